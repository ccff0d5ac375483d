import type { KeyVerdict } from '../core/account/key-verdict.ts';
import { verdictOfRefusal } from '../core/account/key-verdict.ts';
import { ByteBuffer } from '../core/byte-buffer.ts';
import type { HeldKey } from '../core/candidate.ts';
import type { Residency, ResidencyBound } from '../core/request/residency.ts';
import { KeyMask } from '../core/secret/key-mask.ts';
import { redactReason } from '../core/secret/redact.ts';
import { DueTimer } from '../due-timer.ts';
import type { Provider } from '../providers/provider.ts';
import { BugGuard } from './bug-guard.ts';
import type { CancelSignal } from './cancellation.ts';
import type { ChatDeps } from './chat-deps.ts';
import { maxErrorBodyBytes } from './exchange-limits.ts';
import { openCandidate, upstreamCallOf } from './opened-key.ts';
import type {
  TransportFailure,
  UpstreamCall,
  UpstreamControl,
  UpstreamHead,
  UpstreamListener,
} from './ports.ts';

/** A list of models takes a vendor no time: whoever says nothing for so long is not there. */
const keyCheckLimitMs = 10_000;

/** What came of asking a vendor whether it knows a key. */
export interface KeyCheck {
  readonly verdict: KeyVerdict;
  /** Redacted, at most 500 characters. */
  readonly reason: string;
  /** The vendor's; null when no answer came. */
  readonly status: number | null;
  readonly latencyMs: number;
}

export type KeyCheckDeps = Pick<
  ChatDeps,
  'transport' | 'providers' | 'endpointOf' | 'openKey' | 'clock' | 'reportUnopenedKey'
>;

/** Where a key's server stands, what the caller's requests are bound to, and which of them asks. */
export interface KeyOccasion {
  readonly residency: Residency;
  readonly residencyBound: ResidencyBound;
  readonly requestId: string;
}

type Answer = Omit<KeyCheck, 'latencyMs'>;

const unreachable = (reason: string): Answer => ({ verdict: 'unreachable', reason, status: null });

/**
 * Asks the key's own server for its list of models, which costs nothing: one call through the upstream client, so with
 * the same guards of address and residency as a chat request. The key is open for as long as that takes. Never
 * rejects for what the server does; throws where a bug of ours shows.
 */
export async function checkKey(
  key: HeldKey,
  occasion: KeyOccasion,
  deps: KeyCheckDeps,
  signal: CancelSignal,
): Promise<KeyCheck> {
  const startedAtMs = deps.clock.monotonicMs();
  const answer = await ask(key, occasion, deps, signal);
  return { ...answer, latencyMs: Math.max(0, Math.round(deps.clock.monotonicMs() - startedAtMs)) };
}

async function ask(
  key: HeldKey,
  { residency, residencyBound, requestId }: KeyOccasion,
  deps: KeyCheckDeps,
  signal: CancelSignal,
): Promise<Answer> {
  const { provider: name, userId } = key;
  const opened = openCandidate({ provider: name, key }, { userId, requestId }, deps);
  if (opened.kind !== 'opened') return unreachable(opened.reason);
  const provider = deps.providers[name];
  const { path, headers } = provider.modelsRequest;
  const call = upstreamCallOf(opened, provider, {
    method: 'GET',
    path,
    headers: { accept: 'application/json', ...headers },
    body: null,
    residency,
    residencyBound,
    userId,
  });
  const answer = await new KeyQuestion(provider, deps).ask(call, signal);
  return { ...answer, reason: redactReason(new KeyMask(opened.secret).words(answer.reason)) };
}

/** One question from its sending to its one answer: of a list nothing is read but its head, of a refusal 64 KiB. */
class KeyQuestion implements UpstreamListener {
  readonly #provider: Provider;
  readonly #deps: KeyCheckDeps;
  readonly #settled = Promise.withResolvers<Answer>();
  readonly #timer: DueTimer;
  /** Of a refusal, in one place: pieces of one byte kept as they came would be ten megabytes. */
  readonly #body = new ByteBuffer();
  #head: UpstreamHead | null = null;
  #control: UpstreamControl | null = null;

  constructor(provider: Provider, deps: KeyCheckDeps) {
    this.#provider = provider;
    this.#deps = deps;
    const late = `No answer within ${keyCheckLimitMs / 1000} s.`;
    this.#timer = new DueTimer(deps.clock.monotonicMs, () => this.#settle(unreachable(late)));
  }

  async ask(call: UpstreamCall, signal: CancelSignal): Promise<Answer> {
    const { transport, clock } = this.#deps;
    const onAbort = (): void => this.#settle(unreachable('The client left before the answer came.'));
    signal.addEventListener('abort', onAbort);
    this.#timer.setDue(clock.monotonicMs() + keyCheckLimitMs);
    try {
      this.#control = transport.send(call, new BugGuard(this, this.#settled.reject));
      if (signal.aborted) onAbort();
      return await this.#settled.promise;
    } finally {
      this.#timer.clear();
      signal.removeEventListener('abort', onAbort);
      // Whatever of the answer is still to come is of no interest.
      this.#control?.abort();
    }
  }

  onHead(head: UpstreamHead): void {
    this.#head = head;
    const { status } = head;
    if (status !== 200) return;
    const isPage = /html/i.test(head.contentType);
    this.#settle(
      isPage
        ? { verdict: 'unreachable', reason: 'The answer is a web page, no list of models.', status }
        : { verdict: 'valid', reason: 'The server listed its models.', status },
    );
  }

  onData(chunk: Buffer): void {
    this.#body.append(chunk);
    if (this.#body.length >= maxErrorBodyBytes) this.#judge();
  }

  onEnd(): void {
    this.#judge();
  }

  onFailure({ message }: TransportFailure): void {
    this.#settle(unreachable(message));
  }

  #judge(): void {
    if (this.#head === null) throw new Error('An answer came without its head.');
    const { status, headers } = this.#head;
    const body = this.#body.view().subarray(0, maxErrorBodyBytes);
    const { kind, message, code } = this.#provider.readError(
      status,
      headers,
      body,
      this.#deps.clock.wallMs(),
    );
    this.#settle({ verdict: verdictOfRefusal(status, kind, code), reason: message, status });
  }

  #settle(answer: Answer): void {
    this.#settled.resolve(answer);
  }
}
