import { createHash } from 'node:crypto';
import type { AnswerBudgets } from '../../src/chat/answer-budget.ts';
import { AnswerBudget, AnswerHold } from '../../src/chat/answer-budget.ts';
import { AnswerCache } from '../../src/chat/answer-cache.ts';
import type { AnswerChat } from '../../src/chat/answer-chat.ts';
import { createChat } from '../../src/chat/answer-chat.ts';
import { AttemptLedger } from '../../src/chat/attempt-ledger.ts';
import { CandidateBreakers } from '../../src/chat/candidate-breakers.ts';
import type { ChatDeps } from '../../src/chat/chat-deps.ts';
import type { Client, ClientStream } from '../../src/chat/client-stream.ts';
import { endpointsOf } from '../../src/chat/endpoints.ts';
import { LaterTurns } from '../../src/chat/later-turn.ts';
import { OpenAttempt } from '../../src/chat/open-attempt.ts';
import type {
  Account,
  ResponseCache,
  TransportFailure,
  UpstreamCall,
  UpstreamControl,
  UpstreamListener,
  UpstreamTransport,
} from '../../src/chat/ports.ts';
import type { StoredAnswer } from '../../src/chat/stored-answer.ts';
import type { ChatTelemetry, TraceHeaders } from '../../src/chat/telemetry-port.ts';
import { frameStart } from '../../src/core/answer/sse-frame.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { AttemptRecord } from '../../src/core/attempt-record.ts';
import { attemptReport } from '../../src/core/attempt-record.ts';
import type { Candidate, HeldKey } from '../../src/core/candidate.ts';
import type { AttemptReport } from '../../src/core/errors.ts';
import { errorText } from '../../src/core/log/error-text.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providerTraits } from '../../src/core/provider-name.ts';
import type { ChatCall, ChatOptions } from '../../src/core/request/chat-call.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { Secret } from '../../src/core/secret/secret.ts';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import { shownModel, shownProvider } from '../../src/core/settled-request.ts';
import { compileTables } from '../../src/core/tables/compile-tables.ts';
import { routingTablesSchema } from '../../src/core/tables/routing-tables.ts';
import type { RoutingTables } from '../../src/core/tables/tables.ts';
import { readGatewayHeaders } from '../../src/http/gateway-headers.ts';
import { providers } from '../../src/providers/registry.ts';
import type { TablesInput } from '../harness/gateway/tables.ts';
import { tables as tablesInput } from '../harness/gateway/tables.ts';
import { watchedDues } from './watched-dues.ts';

/** The story with everything around it faked but the provider translations: those are the real ones. */

export function testTables(overrides: Partial<TablesInput> = {}): RoutingTables {
  return compileTables(routingTablesSchema.parse(tablesInput(overrides)), 'test-tables', 1);
}

const sealed = { version: 2, masterKeyId: 'm', nonce: Buffer.alloc(12), ciphertext: Buffer.alloc(32) };

export function heldKey(provider: ProviderName, overrides: Partial<HeldKey> = {}): HeldKey {
  return {
    id: `key-of-${provider}`,
    userId: 'user-1',
    provider,
    declaredRegion: null,
    baseUrl: provider === 'self_hosted' ? 'http://127.0.0.1:9/v1' : null,
    label: null,
    createdAtMs: 0,
    sealed,
    ...overrides,
  };
}

/** The plaintext of a key, unlike anything the redaction rules would recognise by its shape. */
export const secretOf = (key: HeldKey): string => `plaintext+${key.id}`;

export function candidateOf(
  provider: ProviderName,
  tables: RoutingTables,
  key = heldKey(provider),
): Candidate {
  const residency = providerTraits[provider].residency === 'india' ? 'india' : 'global';
  const model = `${provider}-model`;
  return {
    provider,
    model,
    key,
    residency,
    facts: tables.facts(provider, model),
    price: null,
    assumedPrice: null,
    heldBack: false,
  };
}

/** Of a request without headers of ours. */
export const noOptions: ChatOptions = readGatewayHeaders({ headers: {}, rawHeaders: [] }, null);

export interface CallParts {
  readonly request?: Partial<ChatRequest>;
  readonly options?: Partial<ChatOptions>;
  readonly tables?: RoutingTables;
  readonly userId?: string;
}

export function callOf(parts: CallParts = {}): ChatCall {
  const messages = [{ role: 'user', content: 'hello' }] as const;
  const request = { model: 'gw/balanced', messages, ...parts.request } as ChatRequest;
  return {
    userId: parts.userId ?? 'user-1',
    requestId: 'request-1',
    request,
    bodyText: JSON.stringify(request),
    options: { ...noOptions, ...parts.options },
    residencyBoundBy: parts.options?.residency === 'india' ? 'request' : null,
    mode: 'gw/balanced',
    tier: 'balanced',
    tables: parts.tables ?? testTables(),
    enteredAtMs: performance.now(),
    trace: null,
  };
}

/** One call that reached the transport; the test plays the vendor. */
export class FakeUpstream implements UpstreamControl {
  readonly connectionName = 'the vendor’s';
  readonly addressClass = 'public';
  /** False: it still waits for its connection. */
  isSent = true;
  aborted = false;
  paused = false;
  pauses = 0;
  readonly call: UpstreamCall;
  readonly #listener: UpstreamListener;

  constructor(call: UpstreamCall, listener: UpstreamListener) {
    this.call = call;
    this.#listener = listener;
  }

  head(status: number, headers: Record<string, string> = {}): this {
    this.#listener.onHead({ status, contentType: headers['content-type'] ?? '', headers });
    return this;
  }

  stream(...events: readonly string[]): this {
    return this.head(200, { 'content-type': 'text/event-stream' }).data(...events);
  }

  data(...parts: readonly string[]): this {
    for (const part of parts) this.#listener.onData(Buffer.from(part));
    return this;
  }

  end(): void {
    this.#listener.onEnd();
  }

  fail(kind: TransportFailure['kind']): void {
    this.#listener.onFailure({ kind, message: `fake ${kind}` });
  }

  /** A whole reply. */
  reply(status: number, body: unknown, headers: Record<string, string | string[]> = {}): void {
    this.head(status, { 'content-type': 'application/json', ...headers });
    this.data(typeof body === 'string' ? body : JSON.stringify(body)).end();
  }

  get body(): Record<string, unknown> {
    return JSON.parse(String(this.call.body)) as Record<string, unknown>;
  }

  pause(): void {
    this.paused = true;
    this.pauses += 1;
  }

  resume(): void {
    this.paused = false;
  }

  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    queueMicrotask(() => this.#listener.onFailure({ kind: 'aborted', message: 'aborted' }));
  }
}

export class FakeTransport implements UpstreamTransport {
  readonly calls: FakeUpstream[] = [];
  readonly #waiting: (() => void)[] = [];

  send(call: UpstreamCall, listener: UpstreamListener): UpstreamControl {
    const upstream = new FakeUpstream(call, listener);
    this.calls.push(upstream);
    for (const wake of this.#waiting.splice(0)) wake();
    return upstream;
  }

  /** The n-th call, from 0, once it is made. */
  async call(index: number): Promise<FakeUpstream> {
    for (;;) {
      const upstream = this.calls[index];
      if (upstream !== undefined) return upstream;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

export class FakeClient implements Client, ClientStream {
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  opened = 0;
  text = '';
  /** What it has for certain, however long the turn goes on. */
  flushed = '';
  ended: 'clean' | 'destroyed' | null = null;
  /** False: the client's buffer is full after each write. */
  ready = true;
  /** Bytes of whole answers that wait for it. */
  kept = 0;
  /** Which of the vendors' connections was last held back for it. */
  source: string | null = null;
  #onDrain: (() => void) | null = null;

  get stream(): ClientStream {
    return this;
  }

  get isOpen(): boolean {
    return this.opened > 0;
  }

  open(): void {
    this.opened += 1;
  }

  keeps(bytes: number): void {
    this.kept += bytes;
  }

  write(bytes: Buffer | string): boolean {
    this.text += bytes.toString();
    return this.ready;
  }

  flush(): void {
    this.flushed = this.text;
  }

  onDrain(callback: () => void, source: string | null): void {
    this.source = source;
    this.#onDrain = callback;
  }

  drain(): void {
    const callback = this.#onDrain;
    this.#onDrain = null;
    callback?.();
  }

  end(bytes: string): void {
    this.text += bytes;
    this.ended = 'clean';
  }

  destroy(): void {
    this.ended = 'destroyed';
  }

  leave(): void {
    this.controller.abort('client-gone');
  }

  /** The payloads of all events, parsed; `[DONE]` as text. */
  get events(): (Record<string, unknown> | '[DONE]')[] {
    return this.text
      .split('\n\n')
      .filter((event) => event !== '')
      .map((event) => event.slice(frameStart.length))
      .map((data) => (data === '[DONE]' ? data : (JSON.parse(data) as Record<string, unknown>)));
  }
}

/** An answer as the cache keeps it, by its JSON in ASCII with one key. */
export const storedText = (json: string): StoredAnswer => ({
  completion: { json, bytes: json.length },
  provider: 'openai',
  model: 'm',
  usage: { ...noUsage },
  values: 2,
  costMicroUsd: 46,
  requestId: 'r',
  traceId: null,
  spanId: null,
});

export class FakeStore implements ResponseCache {
  readonly entries = new Map<string, Buffer>();
  readonly ttls: number[] = [];

  get(key: string): Promise<Buffer | null> {
    return Promise.resolve(this.entries.get(key) ?? null);
  }

  set(key: string, value: Buffer, ttlSeconds: number): Promise<boolean> {
    this.entries.set(key, value);
    this.ttls.push(ttlSeconds);
    return Promise.resolve(true);
  }
}

export class FakeTelemetry implements ChatTelemetry {
  readonly attempts: AttemptRecord[] = [];
  readonly fallbacks: string[] = [];
  readonly skipped: string[] = [];
  readonly cache: string[] = [];
  readonly rows: SettledRow[] = [];
  readonly streamEnds: string[] = [];
  readonly stalls: number[] = [];
  streams = 0;
  plans = 0;

  planned: ChatTelemetry['planned'] = (_call, skipped) => {
    this.plans += 1;
    for (const { provider, reason } of skipped) this.skipped.push(`${provider} ${reason}`);
  };
  attemptEnded: ChatTelemetry['attemptEnded'] = (_call, record) => void this.attempts.push(record);
  fellBack: ChatTelemetry['fellBack'] = (_call, from, to, failure) => {
    this.fallbacks.push(`${from.provider} ${failure.kind} ${to.provider}`);
  };
  attemptStarted = (): void => undefined;
  attemptSent = (): TraceHeaders => ({});
  answerBegan = (): void => undefined;
  streamStalled: ChatTelemetry['streamStalled'] = (_call, gapMs) => void this.stalls.push(gapMs);
  streamOpened = (): void => {
    this.streams += 1;
  };
  streamClosed: ChatTelemetry['streamClosed'] = (end) => void this.streamEnds.push(end);
  cacheHit = (): void => undefined;
  settled: ChatTelemetry['settled'] = (_call, row) => {
    this.cache.push(row.cache);
    this.rows.push(rowOf(row));
  };
}

/** A settled request as its row shows it. */
export interface SettledRow extends SettledRequest {
  readonly provider: string;
  readonly model: string;
  readonly status: string;
  readonly error: string | null;
  readonly attempts: readonly AttemptReport[];
  readonly cacheHit: boolean;
}

function rowOf(settled: SettledRequest): SettledRow {
  return {
    ...settled,
    provider: shownProvider(settled),
    model: shownModel(settled),
    status: settled.end.status,
    error: errorText(settled.end),
    attempts: settled.candidates.map(attemptReport),
    cacheHit: settled.cachedFrom !== null,
  };
}

/** Everything one story runs on, with what it left behind. */
export class World {
  readonly transport = new FakeTransport();
  readonly telemetry = new FakeTelemetry();
  /** Key and request of each line on a key that does not open. */
  readonly unopened: [keyId: string, requestId: string][] = [];
  readonly store = new FakeStore();
  readonly rows: SettledRow[] = [];
  /** The forms that servers behind keys were found to want. */
  readonly forms = new Map<string, string>();
  readonly answers: AnswerBudgets = {
    large: new AnswerBudget(1024 * 1024, 1),
    small: new AnswerBudget(1024 * 1024, 1),
    kept: new AnswerBudget(1024 * 1024, 1),
  };
  readonly breakers = new CandidateBreakers(() => performance.now());
  readonly later = new LaterTurns();
  readonly opened: string[] = [];
  /** Set: rows are committed only when the test says so. */
  commit: Promise<void> = Promise.resolve();
  readonly bugs: unknown[] = [];
  readonly deps: ChatDeps;
  /** With the JSON answer as its text. */
  readonly answerChat: (...asked: Parameters<AnswerChat>) => Promise<string | null>;
  #ids = 0;
  #micros = 0;

  /** What answers take of the memory, by what is counted of them. */
  get heldAnswerBytes(): number {
    const { large, small, kept } = this.answers;
    return large.heldBytes + small.heldBytes + kept.heldBytes;
  }

  /** Of the fullest of their budgets. */
  get answersFullness(): number {
    const { large, small, kept } = this.answers;
    return Math.max(large.fullness, small.fullness, kept.fullness);
  }

  constructor() {
    this.deps = {
      transport: this.transport,
      providers,
      endpointOf: endpointsOf(providers, {}),
      openKey: (key) => {
        if (key.label === 'cannot be opened') return null;
        this.opened.push(key.id);
        return new Secret(secretOf(key));
      },
      clock: {
        wallMs: () => Date.now(),
        monotonicMs: () => performance.now(),
        stampMicros: () => {
          this.#micros += 1;
          return this.#micros;
        },
      },
      dues: watchedDues(),
      newId: () => {
        this.#ids += 1;
        return createHash('sha256').update(String(this.#ids)).digest('hex').slice(0, 12);
      },
      requestForms: {
        of: (keyId) => this.forms.get(keyId) ?? null,
        learn: (keyId, form) => void this.forms.set(keyId, form),
      },
      answers: this.answers,
      breakers: this.breakers,
      telemetry: this.telemetry,
      requestLog: {
        record: async (row) => {
          await this.commit;
          this.rows.push(rowOf(row));
        },
        accepting: () => true,
      },
      cache: new AnswerCache(
        this.store,
        () => performance.now(),
        this.later,
        (cause) => void this.bugs.push(cause),
      ),
      later: this.later,
      reportBug: (cause) => void this.bugs.push(cause),
      reportUnopenedKey: (keyId, { requestId }) => void this.unopened.push([keyId, requestId]),
    };
    const chat = createChat(this.deps);
    this.answerChat = async (...asked) => {
      const answer = await chat(...asked);
      if (answer === null) return null;
      if (answer.bytes !== Buffer.byteLength(answer.json))
        throw new Error('The answer states a wrong length.');
      return answer.json;
    };
  }

  /** What a whole answer of this call is counted by. */
  room({ userId }: Pick<ChatCall, 'userId'>): AnswerHold {
    return new AnswerHold(this.answers, userId, false);
  }

  /** A begun attempt, outside of any story. */
  openAttempt(call: ChatCall, candidate: Candidate): OpenAttempt {
    const startedAtMs = this.deps.clock.monotonicMs();
    return new OpenAttempt(call, candidate, 1, startedAtMs, new AttemptLedger(), this.deps);
  }
}

/** Keys for every candidate of `gw/balanced`: openai, sarvam, anthropic. */
export const balancedKeys = [heldKey('openai'), heldKey('sarvam'), heldKey('anthropic')];

export function accountOf(keys: readonly HeldKey[] = balancedKeys): Account {
  return { userId: 'user-1', keys, readAtMs: 0 };
}

/** Lets everything that is ready to run do so, without time passing. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
}
