import type {
  ClaimedSlot,
  ClaimSlotInput,
  DescribeJobInput,
  JobDescription,
  JobSettings,
  Json,
  RoundResult,
  RunAttemptInput,
} from '@millrace/proto/control';

/** The answer of `prepareJob`. */
export interface PreparedJob extends JobSettings {
  /** The newest generation of the job's record, 0 without a record; absent in answers of older versions. */
  readonly generation?: number;
}

/** Input of `claimGeneration`. `claim` makes a repeated call harmless: the same claim gets the same generation. */
export interface ClaimInput {
  readonly settings: JobSettings;
  readonly run: string;
  readonly claim: string;
  /**
   * The generation that this claim takes over from: the one that this run claimed before, or for its first claim the one
   * that `prepareJob` saw; 0 = none. Null when an older version prepared the job and did not tell.
   */
  readonly previous: number | null;
}

/** The generation that fences every older one, and where it starts. */
export interface Claim {
  readonly generation: number;
  readonly lineage?: string;
  readonly restoreFrom: string | null;
  /** Number of the first round of the attempt. */
  readonly nextCheckpoint: number;
  /** Number of the newest registered checkpoint of this run; 0 = none. */
  readonly newestCheckpoint: number;
}

export interface RunnerAddress {
  readonly runnerId: string;
  readonly address: string;
}

export interface WatchInput {
  readonly id: string;
  readonly generation: number;
  readonly runners: readonly RunnerAddress[];
  /** A runner that does not answer for this long is lost. */
  readonly silenceMaxMs: number;
}

export interface AttemptAddress {
  readonly id: string;
  readonly generation: number;
  readonly runners: readonly RunnerAddress[];
}

export interface AwaitRunningInput extends AttemptAddress {
  readonly parallelism: number;
}

/** What every step of a round names. */
export interface RoundStep {
  readonly id: string;
  readonly generation: number;
  readonly checkpoint: number;
  readonly codeHash: string;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly runners: readonly RunnerAddress[];
  /** See {@link RoundInput.stop}. */
  readonly stop?: boolean;
}

/** The answer of `drain`: where the checkpoint's parts are listed, never the parts. */
export interface Drained {
  readonly path: string;
  readonly bytesPut: number;
  readonly bytesLinked: number;
  /** Every source had ended before the barrier. */
  readonly last: boolean;
}

export interface RegisterInput {
  readonly step: RoundStep;
  readonly drained: Drained;
  readonly checkpointsRetained: number;
  /** See {@link RoundInput.savepoints}. */
  readonly savepoints?: readonly string[];
}

/** Everything that the workflows ask of a control-plane process; all of it may be repeated at any time. */
export interface ControlActivities {
  prepareJob(input: Json | undefined): Promise<PreparedJob>;
  claimGeneration(input: ClaimInput): Promise<Claim>;
  finishJob(input: { readonly id: string; readonly generation: number }): Promise<void>;
  /** Never resolves while all runners answer; fails with `runner-lost`. */
  watchRunners(input: WatchInput): Promise<void>;
  /** Resolves when every slot is open and a record was read, or none for a second; never while slots are missing. */
  awaitRunning(input: AwaitRunningInput): Promise<{ readonly atMs: number }>;
  /** The sources of the attempt read nothing more. */
  endInputs(attempt: AttemptAddress): Promise<void>;
  /** Those of the runners that answer as themselves now. */
  liveRunners(runners: readonly RunnerAddress[]): Promise<readonly string[]>;
  barrier(step: RoundStep): Promise<void>;
  drain(step: RoundStep): Promise<Drained>;
  link(input: { readonly step: RoundStep; readonly drained: Drained }): Promise<void>;
  register(input: RegisterInput): Promise<void>;
  /** Makes the round unable to register. The answer is its result if it had already been registered. */
  abortRound(step: RoundStep): Promise<RoundResult | null>;
}

/** What job workflows ask of runners. */
export interface RunnerActivities {
  claimSlot(input: ClaimSlotInput): Promise<ClaimedSlot>;
  describeJob(input: DescribeJobInput): Promise<JobDescription>;
  runAttempt(input: RunAttemptInput): Promise<void>;
}
