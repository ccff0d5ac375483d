import type { IncomingHttpHeaders } from 'node:http';
import type { ChatOptions, Override } from '../core/chat-call.ts';
import { InvalidRequestError } from '../core/errors.ts';
import { isProviderName } from '../core/provider-name.ts';

const ttlSeconds = { fallback: 3600, least: 60, most: 86_400 } as const;
const timeoutSeconds = { least: 1, most: 300 } as const;
const maxModelLength = 256;
const integer = /^-?[0-9]+$/;

/** Reads one `X-Gateway-*` header, or its alias from before the rename when there is none. */
class HeaderReader {
  readonly #headers: IncomingHttpHeaders;
  readonly #legacyName: string | null;
  usedLegacy = false;

  constructor(headers: IncomingHttpHeaders, legacyName: string | null) {
    this.#headers = headers;
    this.#legacyName = legacyName;
  }

  read(name: string): string | undefined {
    const current = this.#headers[`x-gateway-${name}`];
    if (typeof current === 'string') return current;
    if (this.#legacyName === null) return undefined;
    const legacy = this.#headers[`x-${this.#legacyName}-${name}`];
    if (typeof legacy !== 'string') return undefined;
    this.usedLegacy = true;
    return legacy;
  }
}

function clampedInteger(text: string, range: { least: number; most: number }, header: string): number {
  if (!integer.test(text))
    throw new InvalidRequestError(`${header} must be an integer number of seconds.`, header);
  return Math.min(range.most, Math.max(range.least, Number(text)));
}

function parseOverride(text: string): Override {
  const header = 'X-Gateway-Override-Model';
  const colon = text.indexOf(':');
  const target = text.slice(0, Math.max(0, colon));
  const model = text.slice(colon + 1);
  if (colon <= 0 || model === '' || model.length > maxModelLength) {
    throw new InvalidRequestError(`${header} must be <provider>:<model>.`, header, 'invalid_override');
  }
  const slash = target.indexOf('/');
  const provider = slash < 0 ? target : target.slice(0, slash);
  const selector = slash < 0 ? null : target.slice(slash + 1);
  if (!isProviderName(provider)) {
    throw new InvalidRequestError(`${header} names an unknown provider.`, header, 'unknown_provider');
  }
  if (selector !== null && (provider !== 'self_hosted' || selector === '')) {
    throw new InvalidRequestError(
      `${header} takes a key label or id only as self_hosted/<label or key id>:<model>.`,
      header,
      'invalid_override',
    );
  }
  return { provider, selector, model };
}

/**
 * `X-Gateway-*` headers → ChatOptions (SPEC 4.5, header rules 1 and 3). `legacyName` is the service's former
 * name while its surface is accepted. Throws InvalidRequestError naming the header. Add a header here only.
 */
export function readGatewayHeaders(
  headers: IncomingHttpHeaders,
  legacyName: string | null,
): { readonly options: ChatOptions; readonly usedLegacy: boolean } {
  const reader = new HeaderReader(headers, legacyName);
  const ttl = reader.read('cache-ttl');
  const ttlValue =
    ttl === undefined ? ttlSeconds.fallback : clampedInteger(ttl, ttlSeconds, 'X-Gateway-Cache-TTL');
  const cached = reader.read('cache')?.trim().toLowerCase() === 'true';
  const override = reader.read('override-model');
  const residency = reader.read('residency');
  if (residency !== undefined && residency.trim().toLowerCase() !== 'india') {
    throw new InvalidRequestError('X-Gateway-Residency must be "india".', 'X-Gateway-Residency');
  }
  const timeout = reader.read('timeout');
  const options: ChatOptions = {
    cacheTtlSeconds: cached ? ttlValue : null,
    override: override === undefined ? null : parseOverride(override),
    residency: residency === undefined ? null : 'india',
    timeoutMs:
      timeout === undefined ? null : clampedInteger(timeout, timeoutSeconds, 'X-Gateway-Timeout') * 1000,
  };
  return { options, usedLegacy: reader.usedLegacy };
}
