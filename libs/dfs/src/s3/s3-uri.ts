import { type RemoteSettings, remoteSettings } from '../remote/remote-uri.ts';
import { badUri, UriParameters, type UriSource } from '../uri-parameters.ts';

export interface S3Settings extends RemoteSettings {
  readonly bucket: string;
  /** Empty, or ends with `/`. */
  readonly keyPrefix: string;
  /** Of a service other than AWS; undefined: what the region says. */
  readonly endpoint: string | undefined;
  /** Undefined: from the environment or the shared configuration file, as for every AWS client. */
  readonly region: string | undefined;
  /** `http://host/bucket/key` instead of `http://bucket.host/key`. */
  readonly pathStyle: boolean;
}

/** `s3://bucket/prefix?endpoint=…&region=…&pathStyle=true`. Refuses what is unknown, and credentials. */
export function s3Settings(source: UriSource): S3Settings {
  const url = URL.parse(source.uri);
  if (url === null || url.hostname === '' || url.hash !== '' || url.port !== '') {
    throw badUri(source, 'write s3://bucket/prefix?parameters');
  }
  if (url.username !== '' || url.password !== '') {
    throw badUri(
      { ...source, uri: 's3://…@…' },
      'credentials do not belong there; AWS_ACCESS_KEY_ID, a profile or a role give them',
    );
  }
  const parameters = new UriParameters(source, url.searchParams);
  const endpoint = parameters.text('endpoint');
  if (endpoint !== undefined && !/^https?:\/\/[^/?#@]+\/?$/.test(endpoint)) {
    throw badUri(source, 'endpoint is not http://host:port or https://host');
  }
  const settings = {
    bucket: url.hostname,
    keyPrefix: keyPrefix(source, url.pathname),
    endpoint,
    // Services of one's own seldom have regions; the signature needs some name.
    region: parameters.text('region') ?? (endpoint === undefined ? undefined : 'us-east-1'),
    pathStyle: parameters.flag('pathStyle') ?? false,
    ...remoteSettings(parameters),
  };
  parameters.end();
  return settings;
}

function keyPrefix(source: UriSource, pathname: string): string {
  let names: string[];
  try {
    names = decodeURIComponent(pathname)
      .split('/')
      .filter((name) => name !== '');
  } catch {
    throw badUri(source, 'the path is not percent-encoded as it should be');
  }
  return names.map((name) => `${name}/`).join('');
}
