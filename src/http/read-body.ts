import type { IncomingMessage } from 'node:http';
import { HttpRequestError, ServiceUnavailableError } from '../core/errors.ts';
import type { BodyHold } from './body-budget.ts';
import { smallBodyBytes } from './body-budget.ts';

export interface BodyLimits {
  readonly limitBytes: number;
  /** Null for a body that is declared to be small. */
  readonly hold: BodyHold | null;
  readonly onShortage: () => void;
}

/** True when the body is declared to be large, or might become so. */
export function mayBeLarge({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return (
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBodyBytes
  );
}

/** The whole body, gathered within its limits. */
class Gathering {
  readonly #limits: BodyLimits;
  readonly #chunks: Buffer[] = [];
  /** Large bodies of known length go to their place at once: chunks and their sum would be twice the memory. */
  readonly #whole: Buffer | null;
  #received = 0;

  constructor(limits: BodyLimits, declared: number) {
    this.#limits = limits;
    this.#whole = declared > smallBodyBytes ? Buffer.allocUnsafeSlow(declared) : null;
  }

  /** Why the body cannot be taken any further; null when it can. */
  add(chunk: Buffer): Error | null {
    const before = this.#received;
    this.#received += chunk.length;
    if (this.#whole !== null) chunk.copy(this.#whole, before);
    else {
      const refused = admit(this.#received, this.#limits);
      if (refused !== null) return refused;
      this.#chunks.push(chunk);
    }
    return null;
  }

  body(): Buffer {
    const [first] = this.#chunks;
    if (this.#whole !== null) return this.#whole;
    return first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
  }
}

/** Counts a body of `bytes` so far; the refusal, or null. */
function admit(bytes: number, { limitBytes, hold, onShortage }: BodyLimits): Error | null {
  if (bytes > limitBytes) {
    return new HttpRequestError(413, 'The request body is too large.', 'body_too_large');
  }
  if (bytes <= smallBodyBytes || hold === null || hold.grow(bytes)) return null;
  onShortage();
  return new ServiceUnavailableError('The gateway is overloaded; try again.', {
    code: 'overloaded',
    headers: { 'retry-after': '1' },
  });
}

/**
 * Reads a body. Hands out the bytes, or 413 or 503 as soon as it is clear that they will not be taken: before
 * the first byte where the length is declared. The stream's own error otherwise.
 */
export function readBody(
  raw: IncomingMessage,
  limits: BodyLimits,
  done: (error: Error | null, body: Buffer | null) => void,
): void {
  const declared = Number(raw.headers['content-length'] ?? 0);
  const refused = admit(declared, limits);
  if (refused !== null) {
    done(refused, null);
    return;
  }
  const gathering = new Gathering(limits, declared);
  const finish = (error: Error | null): void => {
    raw.removeListener('data', onData);
    raw.removeListener('end', onEnd);
    raw.removeListener('error', finish);
    done(error, error === null ? gathering.body() : null);
  };
  const onData = (chunk: Buffer): void => {
    const failure = gathering.add(chunk);
    if (failure !== null) finish(failure);
  };
  const onEnd = (): void => finish(null);
  raw.on('data', onData);
  raw.on('end', onEnd);
  raw.on('error', finish);
}
