import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { ChatOptions, Override } from '../core/chat-call.ts';
import { InvalidRequestError } from '../core/errors.ts';
import { isProviderName } from '../core/provider-name.ts';

const ttlSeconds = { fallback: 3600, least: 60, most: 86_400 } as const;
const timeoutSeconds = { least: 1, most: 300 } as const;
const maxModelLength = 256;
const integer = /^-?[0-9]+$/;

const shown = {
  cache: 'X-Gateway-Cache',
  'cache-ttl': 'X-Gateway-Cache-TTL',
  'override-model': 'X-Gateway-Override-Model',
  residency: 'X-Gateway-Residency',
  timeout: 'X-Gateway-Timeout',
} as const;

/** The service's former name, whose headers are read as a fallback; after the sunset they are no more. */
export interface LegacyHeaders {
  readonly name: string;
  readonly ended: boolean;
}

/** What may not be ignored after the sunset: the request would go where its sender did not want it. */
const neverIgnored: ReadonlySet<string> = new Set(['residency', 'override-model']);

type SentHeaders = Pick<IncomingMessage, 'headers' | 'rawHeaders'>;

/** Reads one `X-Gateway-*` header, or its alias from before the rename when there is none. */
class HeaderReader {
  readonly #sent: SentHeaders;
  readonly #legacy: LegacyHeaders | null;
  usedLegacy = false;

  constructor(sent: SentHeaders, legacy: LegacyHeaders | null) {
    this.#sent = sent;
    this.#legacy = legacy;
  }

  read(name: keyof typeof shown): string | undefined {
    const current = this.#single(`x-gateway-${name}`, shown[name]);
    if (current !== undefined || this.#legacy === null) return current;
    const header = `x-${this.#legacy.name}-${name}`;
    if (this.#legacy.ended) {
      if (neverIgnored.has(name) && this.#sent.headers[header] !== undefined) throw legacyEnded(header, name);
      return undefined;
    }
    const legacy = this.#single(header, shown[name]);
    if (legacy !== undefined) this.usedLegacy = true;
    return legacy;
  }

  /** Node joins what was sent twice with `, `, which may also be part of one value: the raw headers tell. */
  #single(header: string, param: string): string | undefined {
    const { headers, rawHeaders } = this.#sent;
    const value = headers[header];
    if (typeof value !== 'string') return undefined;
    if (!value.includes(', ')) return value;
    const values = rawHeaders.filter(
      (_, index) => rawHeaders[index - 1]?.toLowerCase() === header && index % 2 === 1,
    );
    const [first = value, ...others] = values;
    if (others.every((other) => other === first)) return first;
    throw new InvalidRequestError(`${param} was sent more than once.`, param, 'repeated_header');
  }
}

function legacyEnded(header: string, name: keyof typeof shown): InvalidRequestError {
  const text = `${header} is no longer read; send ${shown[name]}.`;
  return new InvalidRequestError(text, shown[name], 'legacy_header');
}

/** Node reads header bytes as Latin-1; model names are UTF-8. Null when they are not. */
function utf8Text(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

function clampedInteger(text: string, range: { least: number; most: number }, header: string): number {
  if (!integer.test(text))
    throw new InvalidRequestError(`${header} must be an integer number of seconds.`, header);
  return Math.min(range.most, Math.max(range.least, Number(text)));
}

function parseOverride(value: string): Override {
  const header = shown['override-model'];
  const text = utf8Text(value);
  if (text === null) throw new InvalidRequestError(`${header} must be UTF-8.`, header, 'invalid_override');
  const colon = text.indexOf(':');
  const target = text.slice(0, Math.max(0, colon));
  const model = text.slice(colon + 1);
  if (colon <= 0 || model === '') {
    throw new InvalidRequestError(`${header} must be <provider>:<model>.`, header, 'invalid_override');
  }
  if (model.length > maxModelLength) {
    const message = `${header} may name a model of at most ${maxModelLength} characters.`;
    throw new InvalidRequestError(message, header, 'invalid_override');
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
 * `X-Gateway-*` headers → ChatOptions (SPEC 4.5, header rules 1 and 3). `legacy` is the surface from
 * before the rename, null where there is none; after its sunset only residency and override are looked for, to be
 * refused. Throws InvalidRequestError naming the header. A new header begins here; `openapi.ts` describes it.
 */
export function readGatewayHeaders(
  sent: SentHeaders,
  legacy: LegacyHeaders | null,
): { readonly options: ChatOptions; readonly usedLegacy: boolean } {
  const reader = new HeaderReader(sent, legacy);
  const ttl = reader.read('cache-ttl');
  const ttlValue =
    ttl === undefined ? ttlSeconds.fallback : clampedInteger(ttl, ttlSeconds, shown['cache-ttl']);
  const cached = reader.read('cache')?.trim().toLowerCase() === 'true';
  const override = reader.read('override-model');
  const residency = reader.read('residency');
  if (residency !== undefined && residency.trim().toLowerCase() !== 'india') {
    throw new InvalidRequestError(`${shown.residency} must be "india".`, shown.residency);
  }
  const timeout = reader.read('timeout');
  const options: ChatOptions = {
    cacheTtlSeconds: cached ? ttlValue : null,
    override: override === undefined ? null : parseOverride(override),
    residency: residency === undefined ? null : 'india',
    timeoutMs: timeout === undefined ? null : clampedInteger(timeout, timeoutSeconds, shown.timeout) * 1000,
  };
  return { options, usedLegacy: reader.usedLegacy };
}
