/**
 * Times of the workflows. A dead control plane is noticed by heartbeats of its activities; a dead runner by
 * `watchRunners` (a broken connection, or silence), so that `runAttempt` may have a long heartbeat timeout and an outage
 * of Temporal does not end attempts that go on well.
 */
export const timeouts = {
  /** Of control-plane activities: after this silence another control plane repeats the step. */
  controlHeartbeatMs: 3_000,
  /** Longest run of one try of a short control-plane activity. */
  controlStepMs: 30_000,
  /** A runner that does not answer for this long is lost. */
  runnerSilenceMaxMs: 2_500,
  /** Of `runAttempt`: how long Temporal may be away from a runner before the attempt is given up. */
  attemptHeartbeatMs: 60_000,
  /** A claimed runner that does not take its `runAttempt` for this long is dead. */
  attemptStartMs: 10_000,
  /** One try of `claimSlot` once a runner has taken it. */
  claimMs: 5_000,
  /** One try of `describeJob` once a runner has taken it: loads the job's code. */
  describeMs: 60_000,
  /** Part of a lease after which it counts as lapsed. */
  leaseShare: 0.7,
  /** Leases of runners that do not say how long they keep a slot. */
  leaseDefaultMs: 10_000,
  backoffFirstMs: 200,
  backoffMaxMs: 30_000,
} as const;

/** Tries of one claim against what earlier runs left under way; each of them can win once. */
export const claimsMax = 5;
/** Attempts of one workflow run, and rounds of one loop run, before it continues as new. */
export const attemptsPerRun = 100;
export const roundsPerRun = 50;
/** Tries of one step of an operation: a quarter of an hour of outage. */
export const operationTriesMax = 200;
