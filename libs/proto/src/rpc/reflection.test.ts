import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { afterEach, expect, it } from 'vitest';
import {
  ServerReflection,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../gen/grpc/reflection/v1/reflection_pb.js';
import { StateService } from '../gen/millrace/v1/state_pb.js';
import { bidiClient, type InitOf } from './bidi-client.ts';
import { addReflection } from './reflection.ts';
import { messageCodec, type WireCodec } from './service-definition.ts';

type Asked = InitOf<typeof ServerReflection.method.serverReflectionInfo>['messageRequest'];

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Answers in the order of the questions. */
async function ask(...questions: readonly NonNullable<Asked>[]): Promise<ServerReflectionResponse[]> {
  const server = new Server();
  addReflection(server, [StateService]);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (e, p) =>
      e === null ? resolve(p) : reject(e),
    );
  });
  const codec = messageCodec(
    ServerReflectionResponseSchema,
  ) as WireCodec<unknown> as WireCodec<ServerReflectionResponse>;
  const client = bidiClient(ServerReflection.method.serverReflectionInfo, codec, `127.0.0.1:${port}`);
  closers.push(
    () => client.close(),
    () => server.forceShutdown(),
  );
  const stream = client.open();
  for (const messageRequest of questions) stream.write({ messageRequest });
  stream.end();
  const answers: ServerReflectionResponse[] = [];
  for await (const answer of stream as AsyncIterable<ServerReflectionResponse>) answers.push(answer);
  return answers;
}

it('tools learn the services, and the messages of a method, from the server alone', async () => {
  const [services, file, unknown] = await ask(
    { case: 'listServices', value: '' },
    { case: 'fileContainingSymbol', value: 'millrace.v1.StateService.Table' },
    { case: 'fileByFilename', value: 'other.proto' },
  );
  expect(services?.messageResponse).toMatchObject({
    value: { service: [{ name: 'millrace.v1.StateService' }, { name: 'grpc.reflection.v1.ServerReflection' }] },
  });
  const found = file?.messageResponse.case === 'fileDescriptorResponse' ? file.messageResponse.value : undefined;
  const [proto] = (found?.fileDescriptorProto ?? []).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  expect(proto).toMatchObject({ name: 'millrace/v1/state.proto', package: 'millrace.v1' });
  expect(proto?.service[0]?.method[0]?.name).toBe('Table');
  expect(unknown?.messageResponse).toMatchObject({ case: 'errorResponse', value: { errorCode: 5 } });
});
