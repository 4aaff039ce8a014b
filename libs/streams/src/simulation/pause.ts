/** Waits as many turns as `n` says, or not at all: some handlers are done at once, others are overtaken. */
export function pause(n: number): Promise<void> | undefined {
  const turns = (n % 7) - 3;
  return turns <= 0 ? undefined : wait(turns);
}

async function wait(turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}
