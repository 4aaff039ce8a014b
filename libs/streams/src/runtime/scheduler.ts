/** Calls back in a later turn of the event loop, after frames, timers and promises had their chance. */
export type Scheduler = (callback: () => void) => void;

export const immediateScheduler: Scheduler = (callback) => {
  setImmediate(callback);
};
