import type { Environment } from './environment.ts';
import { tracingMistake } from './tracing-settings.ts';

/** Settings that are sound by themselves, and what they come to beside each other. */

/** Whether a listener on all addresses of a kind, or of both, has this one too. */
const covers = (wildcard: string, host: string): boolean =>
  wildcard === '::' || (wildcard === '0.0.0.0' && (host === '::' || !host.includes(':')));

/** Whether two listeners with the same port are in each other's way. */
function isSamePlace(host: string, other: string): boolean {
  return host === other || covers(host, other) || covers(other, host);
}

/** Why these cannot be used together, in one line that names one of them; null: they can. `host`: of the API. */
export function conflictIn(env: Environment, host: string): string | null {
  const { PORT: port, GW_ADMIN_PORT: adminPort } = env;
  if (env.GW_REGISTRATION === 'token' && env.GW_REGISTRATION_TOKEN === undefined)
    return 'GW_REGISTRATION=token needs GW_REGISTRATION_TOKEN (at least 16 characters).';
  if (port !== 0 && port === adminPort && isSamePlace(host, env.GW_ADMIN_HOST))
    return `GW_ADMIN_PORT: ${port} is PORT already; keep the two apart`;
  return tracingMistake(env);
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
