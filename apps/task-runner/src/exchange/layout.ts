import type { AttemptPlan } from '@millrace/proto';

/** Another runner of the attempt. */
export interface ExchangePeer {
  readonly runnerId: string;
  /** host:port of its gRPC server. */
  readonly address: string;
  readonly slots: readonly number[];
}

/** Which slots run here and which elsewhere. */
export interface ExchangeLayout {
  readonly slots: readonly number[];
  readonly peers: readonly ExchangePeer[];
}

/** The attempt as the runner `runnerId` sees it. Index in `plan.slots` = slot. */
export function exchangeLayout(plan: Pick<AttemptPlan, 'slots'>, runnerId: string): ExchangeLayout {
  const slots: number[] = [];
  const peers = new Map<string, { runnerId: string; address: string; slots: number[] }>();
  for (const [slot, claimed] of plan.slots.entries()) {
    if (claimed.runnerId === runnerId) {
      slots.push(slot);
      continue;
    }
    const peer = peers.get(claimed.runnerId);
    if (peer === undefined) {
      peers.set(claimed.runnerId, { runnerId: claimed.runnerId, address: claimed.address, slots: [slot] });
    } else peer.slots.push(slot);
  }
  return { slots, peers: [...peers.values()] };
}
