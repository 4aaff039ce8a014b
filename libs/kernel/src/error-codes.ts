import type { ErrorKind } from './errors.ts';

interface ErrorEntry {
  readonly kind: ErrorKind;
  /** One sentence: what happened. */
  readonly meaning: string;
  /** One or two sentences: what the reader should do. */
  readonly mend: string;
}

function entry(kind: ErrorKind, meaning: string, mend: string): ErrorEntry {
  return { kind, meaning, mend };
}

/** Every error code. `docs/errors.md` is generated from this list (`npm run docs`) and a test compares the two. */
export const errorCodes = {
  unexpected: entry(
    'bug',
    'A fault that no code of Millrace expected.',
    'Read the cause in the log. If it comes from your handler, mend the handler; otherwise report it.',
  ),
  'invariant-broken': entry(
    'bug',
    'An assertion inside Millrace does not hold.',
    'Nothing was written after the check. Report it with the log.',
  ),
  'bad-argument': entry(
    'input',
    'A value given to an API is not allowed.',
    'The message names the argument and what is allowed.',
  ),
  'bad-setting': entry(
    'setup',
    'A setting has a value that cannot be used.',
    'The message names the setting, its value and what is allowed.',
  ),
  'rpc-unavailable': entry(
    'retry',
    'The other process cannot be reached, or the connection broke.',
    'Millrace tries again. If it lasts, check that the process runs and that the address in the message can be reached.',
  ),
  'rpc-deadline': entry(
    'retry',
    'The other process did not answer in time.',
    'Millrace tries again. If it lasts, look at the load of the process named in the trace.',
  ),
  'rpc-refused': entry(
    'setup',
    'The other process does not serve this call or does not allow it.',
    'Check that all processes run the same version and that the address belongs to Millrace.',
  ),
  'rpc-too-large': entry(
    'setup',
    'A message is larger than the limit of the connection.',
    'Make the records smaller; one record must fit into one message.',
  ),
  'attempt-fenced': entry(
    'fenced',
    'A newer attempt of the job has taken over.',
    'Nothing to do: the older attempt stops.',
  ),
  'attempt-unknown': entry(
    'retry',
    'The runner does not host this attempt, or not yet.',
    'Millrace tries again until the attempt is deployed or replaced.',
  ),
  'runner-mismatch': entry(
    'setup',
    'A call reached another runner than the one it names: the address is used by another process now.',
    'Millrace restarts the attempt. If it lasts, give each runner an address of its own.',
  ),
  'exchange-broken': entry(
    'retry',
    'The stream of records from another runner broke.',
    'The attempt restarts from the last checkpoint. Look in the log of the runner named in the message.',
  ),
  'exchange-overrun': entry(
    'bug',
    'A slot sent more than the credit that its receiver had granted.',
    'The attempt was stopped before memory grew. Report it with the log.',
  ),
  'state-bad-value': entry(
    'input',
    'A codec was given a value that it cannot write.',
    'The message names the field and the value. Mend the handler, or declare a codec that fits.',
  ),
  'state-bad-key': entry(
    'input',
    'A key is of a type that has no canonical form.',
    'Use strings, numbers, bigints, booleans, null, dates, byte arrays, or arrays and plain objects of these.',
  ),
  'state-incompatible': entry(
    'setup',
    'State of an earlier version of the job cannot be read by this one.',
    'The message names the state and the field. Restore the old declaration, make new fields optional(…) or nullable(…), or use a new name. Where it names operators: give them the uids that they had, or start the job with allowDroppedState.',
  ),
  'state-late-access': entry(
    'bug',
    'A handler touched state after the record it belongs to was finished.',
    'Await every state access before the handler returns.',
  ),
  'state-fenced': entry(
    'fenced',
    'A newer generation of the job has opened this state table.',
    'Nothing to do: this attempt is over and a newer one is running.',
  ),
  'state-table-closed': entry('bug', 'A call reached a state table that was closed.', 'Report it with the log.'),
  'state-uncovered-range': entry(
    'setup',
    'The snapshots given to a restore do not cover all key groups of the table.',
    'Restore from a complete checkpoint: the message names the missing key groups.',
  ),
  'state-remote-broken': entry(
    'retry',
    'The connection of a state table to the state-service broke, or an answer did not come in time.',
    'The attempt restarts from the last checkpoint. Check that the state-service runs and can be reached; its log says more.',
  ),
  'state-remote-overrun': entry(
    'bug',
    'More was asked of a remote state table than may wait for it.',
    'The call was refused before memory grew. Report it with the log.',
  ),
  'state-service-full': entry(
    'retry',
    'The state-service holds as many open tables or scans as it may.',
    'Start more state-services or raise their setting `tablesMax` (MILLRACE_STATE_TABLES_MAX).',
  ),
  'state-service-stopping': entry(
    'retry',
    'The state-service is shutting down and opens no more tables.',
    'The attempt restarts from the last checkpoint as soon as a state-service answers again.',
  ),
  'state-service-token': entry(
    'setup',
    'The state-service serves only clients that show its token, and this one showed none or another.',
    'Give the task-runners the file that the state-service has: --state-service-token-file (MILLRACE_STATE_SERVICE_TOKEN_FILE).',
  ),
  'state-service-list': entry(
    'setup',
    'A snapshot lies on other state-services than the task-runner knows.',
    'Give --state-service (MILLRACE_STATE_SERVICE) all the instances, by the names, that the message tells; shards do not move between them.',
  ),
  'kv-shards-fixed': entry(
    'setup',
    'State has one shard for each key group, and their number is another than the maxParallelism of the job.',
    'Start the job with the maxParallelism that its state has: the message names it.',
  ),
  'kv-snapshot-missing': entry(
    'setup',
    'A snapshot of shards is not on the disk of this state-service.',
    'Start the state-service on the directory that it had, and give the runners the same list of services as before.',
  ),
  'kv-checkpoint-failed': entry(
    'retry',
    'The files of a shard changed all the time while a snapshot of it was taken.',
    'The round is repeated. If it lasts, the disk of the state-service is too slow for its compaction.',
  ),
  'state-backend-unavailable': entry(
    'retry',
    'The store behind a state backend could not be reached or did not answer.',
    'The attempt restarts from the last checkpoint. Check that the store runs and that `--backend-options` names it.',
  ),
  'cql-unavailable': entry(
    'retry',
    'The CQL ring did not serve a request in time: too few nodes are up for a quorum, or it is overloaded.',
    'The attempt restarts from the last checkpoint. Check that a majority of the replicas is up; `giveUpAfterMs` of `--backend-options` is how long requests are repeated.',
  ),
  'cql-refused': entry(
    'setup',
    'The CQL ring refused a request.',
    'The message has the words of the ring: mend the credentials, permissions or limits it names in the ring or in `--backend-options`.',
  ),
  'cql-snapshot-missing': entry(
    'setup',
    'A snapshot is not in the CQL ring, or not in this keyspace of it.',
    'Point `--backend-options` at the ring and keyspace that the job had. A snapshot that was released cannot be had again.',
  ),
  'cql-value-too-large': entry(
    'input',
    'A value is larger than the ring takes.',
    'Split the state (a map or list instead of one value), or raise `valueBytesMax` of `--backend-options` together with `commitlog_segment_size` of the ring.',
  ),
  'cql-lease-lost': entry(
    'retry',
    'The process was silent for so long that the ring no longer counts its tables as open.',
    'The attempt restarts from the last checkpoint. The machine or the event loop stood still for minutes: its log says more.',
  ),
  cancelled: entry('cancelled', 'The work was asked to stop.', 'Nothing to do.'),
  'aec-unawaited-access': entry(
    'bug',
    'A handler finished while state accesses that it had started were pending.',
    'Put an await before each access of state, and return or await the promises of functions that access it.',
  ),
  'aec-access-after-finish': entry(
    'bug',
    'State was accessed, or work was derived, after the record that it belongs to had finished.',
    'Await everything that the handler starts; keep no state handle or context beyond its record.',
  ),
  'aec-timeout': entry(
    'retry',
    'A call that a handler made to an external service took longer than its time limit.',
    'Check the service. Raise the limit, or give the call a result for this case (onTimeout).',
  ),
  'ufs-fenced': entry(
    'fenced',
    'A newer generation has claimed this object.',
    'Stop: another attempt of the job has taken over. Nothing was changed by the refused call.',
  ),
  'ufs-conflict': entry(
    'retry',
    'Too many others changed the same object at the same time, or it is unknown whether a change took effect.',
    'Call again. A change may be applied again, so it has to look at the current value first.',
  ),
  'ufs-corrupt': entry(
    'setup',
    'A stored object is damaged, cut off, or written in a format that this version does not know.',
    'Nothing was changed. Restore the named object from a backup of the file system, or start from another checkpoint.',
  ),
  'ufs-missing': entry(
    'setup',
    'An object or file that a checkpoint or table relies on does not exist.',
    'Something other than Millrace removed it, or it belongs to another root: check `dfs`, or start from another checkpoint.',
  ),
  'ufs-holder-taken': entry(
    'input',
    'A holder object exists with other content.',
    'Holders are written once: use a new name (a new checkpoint number or generation).',
  ),
  'ufs-checkpoint-gone': entry(
    'input',
    'The checkpoint that was to be forked was given up by its job meanwhile.',
    'Fork a newer checkpoint of the job, or a savepoint, which its job never gives up.',
  ),
  'cache-filter-full': entry(
    'setup',
    'The existence filter of a slot is full of keys that have not expired, so it cannot take another.',
    'The message says how much memory to add to which setting. Or let it turn itself off where memory is short, run at a higher parallelism, or give the state a shorter time to live.',
  ),
  'dfs-bad-path': entry(
    'input',
    'A path inside the file system is not allowed.',
    'Use relative paths with `/` between names, no empty, `.` or `..` part, at most 1024 bytes in all and 240 a name.',
  ),
  'dfs-path-taken': entry(
    'input',
    'A path is a directory where a file is wanted, or the other way round.',
    'Use another path, or move away what is there.',
  ),
  'dfs-not-found': entry(
    'input',
    'A file that was to be read does not exist.',
    'If it belonged to a checkpoint, something other than Millrace removed it: start from another checkpoint.',
  ),
  'dfs-unavailable': entry(
    'retry',
    'The file system did not answer, or answered with a failure that may pass, until the retries were used up.',
    'Nothing if it recovers. Otherwise look at the named path and at the health of the store.',
  ),
  'dfs-throttled': entry(
    'retry',
    'The file system answered that it gets too many requests (503, 429), or the rate limit of this client held one back for too long.',
    'Nothing if it passes. Otherwise set `requestsPerSecond` in the URI of the file system below what the store allows, or raise its limit.',
  ),
  'dfs-no-space': entry(
    'setup',
    'The file system has no space or quota left.',
    'Free space at the named path, raise the quota, or set `dfs` to a larger store.',
  ),
  'dfs-denied': entry(
    'setup',
    'The file system refuses access.',
    'Give the user that runs Millrace the right to read and write at the named path.',
  ),
  'dfs-unsupported': entry(
    'setup',
    'The file system lacks an operation that Millrace relies on.',
    'Set `dfs` to a directory on a local file system with hard links and atomic rename, or to an object store.',
  ),
  'job-input': entry(
    'input',
    'The input of a workflow, or of an update of a job, cannot be used.',
    'The message names the field and what is allowed. Start it again with a corrected input.',
  ),
  'job-already-running': entry(
    'input',
    'A job with this id is running.',
    'Use the running job, cancel it first, or give this one an `id` of its own.',
  ),
  'job-not-found': entry('input', 'No job with this id is known.', 'Look at the list of jobs; ids are case-sensitive.'),
  'job-not-running': entry(
    'input',
    'The job is known, but it does not run, so nothing can be done to its attempt.',
    'Start the job; it goes on from its newest checkpoint.',
  ),
  'job-ended': entry(
    'input',
    'The job ended before the operation on it was done.',
    'Look at how it ended; start it again if it is to go on, and repeat the operation.',
  ),
  'operation-refused': entry(
    'input',
    'The job is not in a state in which this can be done to it.',
    'The message says why: another operation is under way, or nothing would change.',
  ),
  'checkpoint-not-found': entry(
    'input',
    'The job has no such checkpoint or savepoint (any more).',
    'The message lists those that it has; `millrace checkpoints <id>` shows them.',
  ),
  'savepoint-exists': entry(
    'input',
    'The job has a savepoint of this name.',
    'Choose another name, or release the old one first.',
  ),
  'job-exists': entry(
    'input',
    'There is a job with this id, or state of one.',
    'Choose another id, or delete that job first.',
  ),
  'no-free-slots': entry(
    'setup',
    'The slots that a higher parallelism needs were not free in time. The job was not stopped.',
    'Start more task-runners, or give them more slots (`--slots`), and repeat; `timeoutMs` says how long it may wait.',
  ),
  'stop-failed': entry(
    'retry',
    'The checkpoint that was to be the last could not be taken. The job runs on.',
    'The message has the reason. Repeat the operation when rounds succeed again.',
  ),
  'rescale-rolled-back': entry(
    'retry',
    'The attempt at the new parallelism did not come up in time or failed. The job runs at the old parallelism again.',
    'The message has the reason: too few slots, or a failure of the new attempt. Mend it and repeat.',
  ),
  'job-failed': entry('input', 'The job ended without success.', 'The message holds the last failure of the job.'),
  'job-generation-fenced': entry(
    'fenced',
    'A newer attempt or run of the same job has taken over.',
    'Nothing to do: the newer one goes on. If it is unexpected, look for a second control plane on the same state.',
  ),
  'job-record-broken': entry(
    'setup',
    'The durable record of the job, or a checkpoint that it names, is missing or unreadable.',
    'Check that MILLRACE_STATE points at the right place. Start the job with `"from": "empty"` to discard its state.',
  ),
  'round-closed': entry(
    'cancelled',
    'The checkpoint round was aborted or overtaken by a later one, so it cannot be registered any more.',
    'Nothing to do: later rounds go on.',
  ),
  'checkpoint-incomplete': entry(
    'bug',
    'The parts of a checkpoint do not add up: a subtask is missing, or an object that it names does not exist.',
    'The round was aborted and nothing was registered. Report it with the log if it comes again.',
  ),
  'runner-lost': entry(
    'retry',
    'A task-runner of the attempt does not answer any more.',
    'Nothing to do: the job restarts from its last checkpoint on the runners that are left.',
  ),
  'runner-stopped': entry(
    'retry',
    'A task-runner of the attempt was asked to shut down.',
    'Nothing to do: the job restarts from its last checkpoint on the runners that are left.',
  ),
  'lease-lapsed': entry(
    'retry',
    'A claimed slot was not used in time and was given back.',
    'Nothing to do: the job claims slots again.',
  ),
  'temporal-unreachable': entry(
    'setup',
    'The Temporal service does not answer.',
    'Check MILLRACE_TEMPORAL_ADDRESS and MILLRACE_NAMESPACE, and that the service is up.',
  ),
  'search-attributes-missing': entry(
    'setup',
    'The Temporal namespace lacks search attributes that the workflows set.',
    'Run the command in the message once per namespace.',
  ),
  'temporal-not-found': entry(
    'setup',
    'No Temporal server could be obtained.',
    'The message lists every way that was tried. Put the Temporal CLI on PATH or set MILLRACE_TEMPORAL_ADDRESS.',
  ),
  'temporal-start-failed': entry(
    'setup',
    'The embedded Temporal server did not come up.',
    'The message ends with what it logged. Often its data directory is damaged or in use: choose another with --data.',
  ),
  'port-in-use': entry(
    'setup',
    'A port is taken by another program.',
    'Stop that program or choose another port; the message names the option.',
  ),
  'job-module': entry(
    'input',
    'A module does not export a job as its default export.',
    'Write `export default job(name, …)` in the module that the message names.',
  ),
  'job-options': entry(
    'input',
    "An option of the job is missing, unknown or has a value that the job's schema refuses.",
    'The message names the path of the option and what is allowed. Nothing was started.',
  ),
  'job-graph': entry(
    'input',
    'The graph that the job builds cannot run.',
    'The message names the operator and what is wrong with it, for example a stream that leads to no sink. Nothing was started.',
  ),
  'source-input': entry(
    'input',
    'An input of a source is missing, cannot be read or holds a record that cannot be decoded.',
    'The message names the file and the place in it. Mend the input, then start again from the last checkpoint.',
  ),
  'source-position': entry(
    'input',
    'A position in the restored checkpoint does not fit the input any more.',
    'Input files must not shrink or disappear while a job reads them. Put the file back.',
  ),
  'sink-directory-used': entry(
    'input',
    'The directory of a file sink already holds output of an earlier run, or another job or operator writes to it.',
    'Give every sink a directory of its own. If the files are of an earlier run of this sink, set `overwrite: true`, which removes them; if their owner is gone, remove the directory with its `.millrace-owner`.',
  ),
  'sink-output-missing': entry(
    'input',
    'A file that a restored checkpoint wrote is neither pending nor published, nor in the log of published files.',
    'Readers may move or delete `part-*`, but hidden files belong to the sink, and every runner must see the same directory. Put the published file back under the name in the message and restart; an empty file is enough if its records were consumed.',
  ),
  'sink-io': entry(
    'retry',
    'Writing or publishing an output file failed.',
    'Read the cause: a full disk or a missing permission. The job restarts from its last checkpoint.',
  ),
  'kafka-unavailable': entry(
    'retry',
    'A Kafka broker did not answer, or not well, for longer than `timeoutMs`.',
    'The job restarts from its last checkpoint by itself. If it goes on, look at the brokers and at the network between them and the runners.',
  ),
  'kafka-refused': entry(
    'setup',
    'Kafka refuses a request: an unknown topic, a missing permission, a setting that does not fit.',
    "The message has Kafka's own name of the reason. A transaction timeout must not exceed the brokers' `transaction.max.timeout.ms`; topics are not created by a job.",
  ),
  'stack-running': entry(
    'setup',
    'An embedded stack already runs on this data directory.',
    'Use it, stop it, or choose another directory with --data.',
  ),
  'process-start-failed': entry(
    'setup',
    'A process of the embedded stack did not become ready.',
    'The message names its log file.',
  ),
  'no-cluster': entry(
    'setup',
    'A command found no cluster to talk to.',
    'Start one with `millrace dev`, or set MILLRACE_TEMPORAL_ADDRESS.',
  ),
  'operator-failed': entry(
    'bug',
    'A handler of the job, or a source or sink, threw an error that Millrace does not know.',
    'The message names the operator and subtask. Mend the handler; the job goes on from its last checkpoint.',
  ),
  'broadcast-too-large': entry(
    'input',
    'The broadcast state of an operator is larger than a checkpoint may hold.',
    'Broadcast what is small (rules, settings) and keep large tables in keyed state, with `connect`.',
  ),
  'record-too-large': entry(
    'input',
    'A record is larger than may travel between slots.',
    'The message names the size and the limit. Keep large values outside the records and pass references.',
  ),
  'channel-broken': entry(
    'retry',
    'The connection between two slots of an attempt broke.',
    'The job restarts from its last checkpoint. If it repeats, look at the runner that the message names.',
  ),
  'checkpoint-aborted': entry(
    'retry',
    'A checkpoint round was given up before it was complete.',
    'Nothing is lost; a later round succeeds. If it repeats, read the reason of the first failed round.',
  ),
  'state-key-absent': entry(
    'input',
    'Nothing is stored for a key.',
    'Write the key as the job has it: JSON, so that `42` is a number and `"42"` a text. `millrace state scan` shows keys.',
  ),
  'state-damaged': entry(
    'setup',
    'Something that a checkpoint relies on is missing, or is not what was written.',
    'The output names each object and the checkpoints that need it. Start from another checkpoint or savepoint, or restore the objects from a backup.',
  ),
  'lsm-corrupt': entry(
    'setup',
    'A state file is damaged: its bytes are not what was written.',
    'The message names the file. Check the storage, then restore from an earlier checkpoint or savepoint.',
  ),
  'lsm-format': entry(
    'setup',
    'A state file or manifest has a format that this version does not read.',
    'Run the version of Millrace that wrote it, or a newer one.',
  ),
  'lsm-entry-too-large': entry(
    'input',
    'A key or a value in state is larger than the limit.',
    'The message names the limit. Split the value (map or list state), or raise the limit in the settings of the store.',
  ),
  'lsm-worker-failed': entry(
    'retry',
    'The background thread that writes state files ended unexpectedly.',
    'The attempt restarts from the last checkpoint. If it happens again, read its error in the log; often memory is short.',
  ),
  'compaction-unanswered': entry(
    'retry',
    'No compactor took a compaction in time.',
    'The task-runner has done it itself. Start compactors (`state-service --role compactor`) on the same Temporal namespace, or start the job with `"compaction": "local"`.',
  ),
  'compaction-failed': entry(
    'retry',
    'A compactor failed, took too long, or answered what cannot be right.',
    'The task-runner has done the compaction itself. If it repeats, read the log of the compactors: they need the same state file system and the same version as the task-runners.',
  ),
  'lsm-closed': entry('cancelled', 'The state table was closed while it was in use.', 'Nothing to do.'),
  'checkpoint-timeout': entry(
    'retry',
    'A checkpoint that was asked for was not registered in time.',
    '`millrace status` shows the rounds and their failures; the Temporal UI shows the step that waits.',
  ),
  'slot-lost': entry(
    'retry',
    "A slot's thread ended unexpectedly.",
    'The job restarts from its last checkpoint. The message has the cause; an unhandled rejection is a fault of a handler.',
  ),
  'slot-out-of-memory': entry(
    'setup',
    "A slot's thread has used up its memory.",
    'Raise the setting `slotMemory` (MILLRACE_SLOT_MEMORY), lower the in-flight limit, or run at a higher parallelism.',
  ),
  'job-unknown': entry(
    'input',
    'No module of the setting `jobs` defines a job of this name.',
    'The message lists the known names. Add the path of the module to MILLRACE_JOBS, or mend the name.',
  ),
  'job-code-differs': entry(
    'setup',
    "A runner's copy of the job's code is not the one that the attempt was planned with.",
    'Bring the same code to every runner, then start the job again.',
  ),
  'checkpoint-unreadable': entry(
    'setup',
    'The checkpoint to start from is missing or cannot be read.',
    'Check that every runner has the same file system (MILLRACE_STATE). The message names the path.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCodes;
