/** What forks have to know of the records of jobs, whose form ufs leaves to others. */
export interface JobRecords {
  /** Paths of all holders that the job's record names now; none when there is no record (any more). */
  liveHolders(job: string): Promise<readonly string[]>;
  /**
   * Whether the fork can never come to be, or is over: the child has a record that was made by another claim, or that says
   * it is deleted. Where it has none, one
   * that says so is written first, so that a fork that was held up finds it. True once, true for ever.
   */
  isAbandoned(child: string, claim: string): Promise<boolean>;
}
