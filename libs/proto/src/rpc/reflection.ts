import { type DescFile, type DescService, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from '../gen/grpc/reflection/v1/reflection_pb.js';
import { addBidi } from './serve.ts';
import { messageCodec } from './service-definition.ts';

type Response = MessageInitShape<typeof ServerReflectionResponseSchema>;
type Answer = NonNullable<Response['messageResponse']>;

/** Serves the reflection protocol, so that tools such as grpcurl can call `services` without their .proto files. */
export function addReflection(server: Server, services: readonly DescService[]): void {
  const all = [...services, ServerReflection];
  const files = new Map(all.flatMap(({ file }) => withImports(file)).map((file) => [`${file.name}.proto`, file]));
  const method = ServerReflection.method.serverReflectionInfo;
  addBidi(server, method, messageCodec(ServerReflectionResponseSchema), (stream) => {
    const reply = stream as unknown as ServerDuplexStream<ServerReflectionRequest, Response>;
    reply.on('data', (request: ServerReflectionRequest) => {
      const answered = reply.write({
        validHost: request.host,
        originalRequest: request,
        messageResponse: answerTo(request, all, files),
      });
      if (answered) return;
      reply.pause();
      reply.once('drain', () => reply.resume());
    });
    reply.on('end', () => reply.end());
  });
}

function answerTo(
  { messageRequest: asked }: ServerReflectionRequest,
  services: readonly DescService[],
  files: ReadonlyMap<string, DescFile>,
): Answer {
  switch (asked.case) {
    case 'listServices':
      return {
        case: 'listServicesResponse',
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case 'fileByFilename':
      return fileAnswer(files.get(asked.value), asked.value);
    case 'fileContainingSymbol':
      return fileAnswer(
        [...files.values()].find((file) => holds(file, asked.value)),
        asked.value,
      );
    default:
      return errorAnswer(status.UNIMPLEMENTED, 'there are no extensions here');
  }
}

function fileAnswer(file: DescFile | undefined, name: string): Answer {
  if (file === undefined) return errorAnswer(status.NOT_FOUND, `nothing here is called ${name}`);
  const fileDescriptorProto = withImports(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
}

function errorAnswer(errorCode: number, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}

function withImports(file: DescFile): DescFile[] {
  return [file, ...file.dependencies.flatMap(withImports)];
}

/** A service, a method of one, or a message at any depth. */
function holds(file: DescFile, symbol: string): boolean {
  const { services, messages, enums } = file;
  return [...services, ...messages, ...enums].some(({ typeName }) => {
    return symbol === typeName || symbol.startsWith(`${typeName}.`);
  });
}
