// What a job declares its states and formats with.
export {
  type Aggregate,
  aggregating,
  array,
  bool,
  bytes,
  type Codec,
  type CodecType,
  float64,
  int64,
  json,
  type KeyValue,
  keyCodec,
  list,
  map,
  msgpack,
  nullable,
  optional,
  reducing,
  type StateDescriptor,
  type StateFacade,
  type StateShape,
  string,
  struct,
  value,
} from '@millrace/state';
export type { AggregateSpec, WindowAggregateSpec, WindowOptions } from './api/aggregate.ts';
export type {
  AsyncContext,
  AsyncMapOptions,
  CallOptions,
  KeyedLookupJoinSpec,
  LookupJoinSpec,
  ResultOrder,
  RetryOptions,
} from './api/async-map.ts';
export type {
  BroadcastMap,
  BroadcastMaps,
  BroadcastShape,
  BroadcastSpec,
  KeyedBroadcastSpec,
  PlainContext,
  SideContext,
  WritableBroadcastMap,
  WritableBroadcastMaps,
} from './api/broadcast.ts';
export { type Change, change } from './api/change.ts';
export { type Duration, durationMs } from './api/duration.ts';
export type { AsynchronousExecution, Execution, KeyedOptions } from './api/execution.ts';
export { Flow } from './api/flow.ts';
export type { FromOptions } from './api/from-options.ts';
export { type Job, job, loadJob, type OptionsJson } from './api/job.ts';
export type {
  IntervalJoinSpec,
  JoinKind,
  JoinSide,
  JoinSpec,
  JoinWindows,
  LateTags,
  OuterJoinSpec,
  OuterKind,
  WindowJoinSpec,
} from './api/joins.ts';
export type { ConnectedStreams, KeyedStream, ReduceOptions } from './api/keyed-stream.ts';
export type {
  ConnectSpec,
  KeyedContext,
  OperatorOptions,
  ProcessSpec,
  SpawnedWork,
  Timers,
} from './api/process.ts';
export type { DeduplicateOptions, TopNSpec } from './api/ranking.ts';
export { type SideTag, sideTag } from './api/side-tag.ts';
export type { Sink } from './api/sink.ts';
export type { EmitRecord, ReaderContext, Source, SourceReader, Split, SplitPosition } from './api/source.ts';
export type { SchemaOutput, StandardIssue, StandardResult, StandardSchema } from './api/standard-schema.ts';
export type { Stream } from './api/stream.ts';
export type { ToStreamOptions } from './api/to-stream-options.ts';
export { type EarlyFiring, type Trigger, type TriggerDecision, type TriggerMoment, trigger } from './api/trigger.ts';
export {
  boundedOutOfOrderness,
  customWatermarks,
  monotonous,
  perRecord,
  type WatermarkOptions,
  type WatermarkStrategy,
  type WatermarkTracker,
} from './api/watermarks.ts';
export type { WindowedStream } from './api/windowed-stream.ts';
export {
  type CountWindowOptions,
  type CountWindows,
  type CumulativeWindows,
  countWindow,
  cumulative,
  type FixedWindowOptions,
  type FixedWindows,
  type GlobalWindows,
  globalWindow,
  type SessionWindows,
  type SlidingWindows,
  session,
  sliding,
  type TumblingWindows,
  tumbling,
  type Window,
  type Windows,
  type WindowTime,
} from './api/windows.ts';
export { buildGraph } from './graph/build-graph.ts';
export { describe, type GraphDescription } from './graph/describe.ts';
export {
  type Edge,
  isSourceOperator,
  type JobGraph,
  type OperatorNode,
  type Partitioning,
} from './graph/job-graph.ts';
export { BaseOperator } from './operators/base-operator.ts';
export type { InFlight, InFlightFile, InFlightFileName, InFlightFiles } from './runtime/in-flight.ts';
export type { Operator, OperatorContext, OperatorPart, Output, Poll, SourceOperator } from './runtime/operator.ts';
export { redistribute } from './runtime/redistribute.ts';
export type { Scheduler } from './runtime/scheduler.ts';
export type {
  Barrier,
  OperatorSnapshot,
  OperatorStats,
  Slot,
  SlotContext,
  SlotSettings,
  SlotSnapshot,
  SlotStats,
} from './runtime/slot.ts';
export { createSlot, type SlotOptions } from './runtime/slot-runtime.ts';
export type { SlotListener, SlotTransport } from './runtime/transport.ts';
export { callback, collect, consoleSink, discard } from './sinks/callback.ts';
export { type JsonLinesSinkOptions, jsonLines } from './sinks/json-lines.ts';
export type { OutputFile, OutputFiles } from './sinks/output-files.ts';
export { type ParquetSinkOptions, parquetSink } from './sinks/parquet-sink.ts';
export { type CsvOptions, csvFiles } from './sources/csv.ts';
export { type GeneratorOptions, generator } from './sources/generator.ts';
export { type JsonLinesSourceOptions, jsonLinesFiles } from './sources/json-lines.ts';
export { type NexmarkSettings, nexmarkEvent } from './sources/nexmark/event.ts';
export {
  type Auction,
  auctionCodec,
  type Bid,
  bidCodec,
  type NexmarkEvent,
  nexmarkCodec,
  nexmarkTime,
  type Person,
  personCodec,
} from './sources/nexmark/model.ts';
export { type NexmarkOptions, nexmark, nexmarkSettings } from './sources/nexmark/nexmark.ts';
export { type ParquetOptions, parquetFiles } from './sources/parquet.ts';
export type { ColumnType, ColumnTypes, RowOf } from './sources/parquet-columns.ts';
export { type WatchDirectoryOptions, watchDirectory } from './sources/watch-directory.ts';
