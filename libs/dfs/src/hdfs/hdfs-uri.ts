import { type RemoteSettings, remoteSettings } from '../remote/remote-uri.ts';
import { badUri, UriParameters, type UriSource } from '../uri-parameters.ts';

export interface HdfsSettings extends RemoteSettings {
  /** `host:port` of the name nodes' HTTP servers; the first that answers and is not in standby is used. */
  readonly nameNodes: readonly string[];
  /** Absolute, without a slash at its end; empty for `/`. */
  readonly root: string;
  /** Whom requests say they come from; undefined: the name nodes' default user. */
  readonly user: string | undefined;
  readonly tls: boolean;
}

/** The default port of a name node's HTTP server. */
const defaultPort = 9870;

/** `hdfs://namenode:httpport[,namenode:httpport]/directory?user=…&tls=true`. Refuses what is unknown, and credentials. */
export function hdfsSettings(source: UriSource, defaultUser: string | undefined): HdfsSettings {
  const [, authority = '', pathname = '', query = ''] =
    /^hdfs:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?$/i.exec(source.uri) ?? [];
  if (authority.includes('@')) {
    throw badUri({ ...source, uri: 'hdfs://…@…' }, 'a user goes behind it, as ?user=name; there are no passwords');
  }
  const nameNodes = authority.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:${defaultPort}`));
  if (!nameNodes.every((host) => URL.parse(`http://${host}/`) !== null)) {
    throw badUri(source, 'write hdfs://namenode:9870/directory?parameters');
  }
  const parameters = new UriParameters(source, new URLSearchParams(query));
  const settings = {
    nameNodes,
    root: rootOf(source, pathname),
    user: parameters.text('user') ?? defaultUser,
    tls: parameters.flag('tls') ?? false,
    ...remoteSettings(parameters),
  };
  parameters.end();
  return settings;
}

function rootOf(source: UriSource, pathname: string): string {
  let names: string[];
  try {
    names = decodeURIComponent(pathname)
      .split('/')
      .filter((name) => name !== '');
  } catch {
    throw badUri(source, 'the path is not percent-encoded as it should be');
  }
  if (names.some((name) => name === '.' || name === '..' || name.includes(':'))) {
    throw badUri(source, 'HDFS takes no such directory');
  }
  return names.map((name) => `/${name}`).join('');
}
