import type { Environment } from './environment.ts';

/** Settings that are sound by themselves, and what they come to beside each other. */

const wildcards: readonly string[] = ['0.0.0.0', '::'];

/** Whether two listeners with the same port are in each other's way. */
function isSamePlace(host: string, other: string): boolean {
  return host === other || wildcards.includes(host) || wildcards.includes(other);
}

/** Over gRPC a collector may be `host:port`; what goes over HTTP needs a URL. */
function refusedEndpoint(env: Environment, name: OtlpEndpoint): string | null {
  const endpoint = env[name]?.trim();
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL;
  if (endpoint === undefined || protocol === 'grpc') return null;
  if (/^https?:\/\/./i.test(endpoint) && URL.canParse(endpoint)) return null;
  return `${name}: must be a URL like http://collector:4318, or OTEL_EXPORTER_OTLP_PROTOCOL be grpc`;
}

type OtlpEndpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';

/** Why these cannot be used together, in one line that names one of them; null: they can. `host`: of the API. */
export function conflictIn(env: Environment, host: string): string | null {
  const { PORT: port, GW_ADMIN_PORT: adminPort } = env;
  if (env.GW_REGISTRATION === 'token' && env.GW_REGISTRATION_TOKEN === undefined)
    return 'GW_REGISTRATION=token needs GW_REGISTRATION_TOKEN (at least 16 characters).';
  if (port !== 0 && port === adminPort && isSamePlace(host, env.GW_ADMIN_HOST))
    return `GW_ADMIN_PORT: ${port} is PORT already; keep the two apart`;
  return (
    refusedEndpoint(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') ??
    refusedEndpoint(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  );
}

/** A setting that counts for nothing beside the others, and when it would count. */
export interface IdleSetting {
  readonly name: keyof Environment;
  readonly only: string;
}

/** Those whose author believes that they count: an API that is open would pass for one that asks for a token. */
export function idleSettings(env: Environment): readonly IdleSetting[] {
  const hasStore = env.GW_PROFILE !== 'sidecar' || env.DATABASE_URL !== undefined;
  const candidates: readonly (IdleSetting & { readonly isIdle: boolean })[] = [
    {
      name: 'GW_REGISTRATION_TOKEN',
      only: 'with GW_REGISTRATION=token',
      isIdle: env.GW_REGISTRATION !== 'token',
    },
    { name: 'GW_SERVICE_KEY', only: 'of a sidecar without DATABASE_URL', isIdle: hasStore },
    { name: 'GW_PROVIDER_KEYS_FILE', only: 'of a sidecar without DATABASE_URL', isIdle: hasStore },
    {
      name: 'GW_TABLES_FILE',
      only: 'without GW_TABLES_CONFIGMAP',
      isIdle: env.GW_TABLES_CONFIGMAP !== undefined,
    },
  ];
  return candidates
    .filter(({ name, isIdle }) => isIdle && env[name] !== undefined)
    .map(({ name, only }) => ({ name, only }));
}
