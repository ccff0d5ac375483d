import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { InvalidRequestError } from '../core/errors.ts';
import { isProviderName, isUserServer, providerNames, userServerNames } from '../core/provider-name.ts';
import type { ChatOptions, Override } from '../core/request/chat-call.ts';
import { maxModelLength } from '../core/tables/model-name.ts';

const ttlSeconds = { fallback: 3600, least: 60, most: 86_400 } as const;
const timeoutSeconds = { least: 1, most: 300 } as const;
const integer = /^-?[0-9]+$/;
/** What `parseOverride` takes, for the description. */
const namedTargets = [...providerNames, ...userServerNames.map((name) => `${name}/[^:]+`)];
const overridePattern = `^(${namedTargets.join('|')}):.{1,${maxModelLength}}$`;

/** One `X-Gateway-*` header. */
interface HeaderDefinition<Value> {
  readonly name: string;
  /** What may be sent, as docs/requests.md shows it. */
  readonly value: string;
  /** In Markdown: in the OpenAPI description, and in docs/requests.md by `npm run generate`. */
  readonly description: string;
  /** The same as JSON Schema: values that are taken as they are. */
  readonly schema: Readonly<Record<string, unknown>>;
  /**
   * What may not be ignored under its name from before the rename, though that is no longer read: the request would
   * go where its sender did not want it.
   */
  readonly neverIgnored?: true;
  /** Throws InvalidRequestError that names the header. */
  readonly parse: (value: string, name: string) => Value;
}

interface GatewayHeader<Value> extends HeaderDefinition<Value> {
  /** As Node names it: put together once, five are looked for in each request. */
  readonly lowerName: string;
}

const header = <Value>(definition: HeaderDefinition<Value>): GatewayHeader<Value> => ({
  ...definition,
  lowerName: definition.name.toLowerCase(),
});

/** Every header of ours that a chat request may have, by what follows `x-gateway-` in lower case. */
export const gatewayHeaders = {
  cache: header({
    name: 'X-Gateway-Cache',
    value: 'true',
    description: 'look up and store the answer; `true` in any case of letters, all else does not',
    schema: { type: 'boolean', default: false },
    parse: (value) => value.trim().toLowerCase() === 'true',
  }),
  'cache-ttl': header({
    name: 'X-Gateway-Cache-TTL',
    value: '<seconds>',
    description: `${ttlSeconds.least} to ${ttlSeconds.most} (clamped), default ${ttlSeconds.fallback}`,
    schema: { type: 'integer', default: ttlSeconds.fallback },
    parse: (value, name) => clampedInteger(value, ttlSeconds, name),
  }),
  'override-model': header({
    name: 'X-Gateway-Override-Model',
    value: '<provider>:<model>',
    description:
      "exactly this model, no fallback, the vendor's errors verbatim. `self_hosted/<label or key id>:<model>` picks one of several keys, else it is the newest; `key_id` of `GET /v1/logs/{id}` says which, where it failed that of its `attempts`",
    schema: { type: 'string', pattern: overridePattern },
    neverIgnored: true,
    parse: parseOverride,
  }),
  residency: header({
    name: 'X-Gateway-Residency',
    value: 'india',
    description: 'only keys whose residency is India; `india` in any case of letters, all else is 422',
    schema: { type: 'string', enum: ['india'] },
    neverIgnored: true,
    parse: parseResidency,
  }),
  timeout: header({
    name: 'X-Gateway-Timeout',
    value: '<seconds>',
    description: `per attempt, ${timeoutSeconds.least} to ${timeoutSeconds.most} (clamped), default that of the tables: to the whole answer, or to the first token of a stream`,
    schema: { type: 'integer' },
    parse: (value, name) => clampedInteger(value, timeoutSeconds, name) * 1000,
  }),
} as const;

type HeaderKey = keyof typeof gatewayHeaders;

/** Node reads header bytes as Latin-1; model names are UTF-8. Null when they are not. */
function utf8Text(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

function clampedInteger(text: string, range: { least: number; most: number }, name: string): number {
  if (!integer.test(text))
    throw new InvalidRequestError(`${name} must be an integer number of seconds.`, name);
  return Math.min(range.most, Math.max(range.least, Number(text)));
}

function parseResidency(value: string, name: string): 'india' {
  if (value.trim().toLowerCase() === 'india') return 'india';
  throw new InvalidRequestError(`${name} must be "india".`, name);
}

function parseOverride(value: string, name: string): Override {
  const text = utf8Text(value);
  if (text === null) throw new InvalidRequestError(`${name} must be UTF-8.`, name, 'invalid_override');
  const colon = text.indexOf(':');
  const target = text.slice(0, Math.max(0, colon));
  const model = text.slice(colon + 1);
  if (colon <= 0 || model === '') {
    throw new InvalidRequestError(`${name} must be <provider>:<model>.`, name, 'invalid_override');
  }
  if (model.length > maxModelLength) {
    const message = `${name} may name a model of at most ${maxModelLength} characters.`;
    throw new InvalidRequestError(message, name, 'invalid_override');
  }
  const slash = target.indexOf('/');
  const provider = slash < 0 ? target : target.slice(0, slash);
  const selector = slash < 0 ? null : target.slice(slash + 1);
  if (!isProviderName(provider)) {
    throw new InvalidRequestError(`${name} names an unknown provider.`, name, 'unknown_provider');
  }
  if (selector !== null && (!isUserServer(provider) || selector === '')) {
    throw new InvalidRequestError(
      `${name} takes a key label or id only as self_hosted/<label or key id>:<model>.`,
      name,
      'invalid_override',
    );
  }
  return { provider, selector, model };
}

/** The service's former name, whose headers are read as a fallback; after the sunset they are no more. */
export interface LegacyHeaders {
  readonly name: string;
  readonly ended: boolean;
}

type SentHeaders = Pick<IncomingMessage, 'headers' | 'rawHeaders'>;

const nameBefore = (legacy: LegacyHeaders, key: string): string => `x-${legacy.name}-${key}`;

/**
 * True where a header is read by its name from before the rename: known of every request, of one that is refused for
 * its body or for that header too.
 */
export function usesLegacyHeader({ headers }: SentHeaders, legacy: LegacyHeaders | null): boolean {
  if (legacy === null || legacy.ended) return false;
  return Object.entries(gatewayHeaders).some(
    ([key, { lowerName }]) =>
      headers[lowerName] === undefined && headers[nameBefore(legacy, key)] !== undefined,
  );
}

/** Reads one header, or its alias from before the rename when there is none. */
class HeaderReader {
  readonly #sent: SentHeaders;
  readonly #legacy: LegacyHeaders | null;

  constructor(sent: SentHeaders, legacy: LegacyHeaders | null) {
    this.#sent = sent;
    this.#legacy = legacy;
  }

  /** Its parsed value; undefined where it was not sent. Errors name it as it was sent. */
  read<Key extends HeaderKey>(key: Key): ReturnType<(typeof gatewayHeaders)[Key]['parse']> | undefined {
    const definition: GatewayHeader<unknown> = gatewayHeaders[key];
    const { lowerName, name } = definition;
    const value = this.#single(lowerName, name);
    if (value !== undefined) return definition.parse(value, name) as never;
    return this.#legacy === null ? undefined : (this.#readBefore(key, definition, this.#legacy) as never);
  }

  #readBefore(
    key: HeaderKey,
    { name, neverIgnored, parse }: GatewayHeader<unknown>,
    legacy: LegacyHeaders,
  ): unknown {
    const before = nameBefore(legacy, key);
    if (legacy.ended) {
      if (neverIgnored === true && this.#sent.headers[before] !== undefined) throw legacyEnded(before, name);
      return undefined;
    }
    const value = this.#single(before, before);
    return value === undefined ? undefined : parse(value, before);
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

function legacyEnded(before: string, name: string): InvalidRequestError {
  return new InvalidRequestError(`${before} is no longer read; send ${name}.`, name, 'legacy_header');
}

/**
 * `X-Gateway-*` headers → ChatOptions (SPEC 4.5, header rules 1 and 3). `legacy` is the surface from
 * before the rename, null where there is none; after its sunset only residency and override are looked for, to be
 * refused. Throws InvalidRequestError naming the header; the first one here wins. A new header is an entry of
 * `gatewayHeaders` and its use here.
 */
export function readGatewayHeaders(sent: SentHeaders, legacy: LegacyHeaders | null): ChatOptions {
  const reader = new HeaderReader(sent, legacy);
  const ttl = reader.read('cache-ttl') ?? ttlSeconds.fallback;
  const cached = reader.read('cache') ?? false;
  const residency = reader.read('residency') ?? null;
  const override = reader.read('override-model') ?? null;
  const timeoutMs = reader.read('timeout') ?? null;
  return { cacheTtlSeconds: cached ? ttl : null, override, residency, timeoutMs };
}
