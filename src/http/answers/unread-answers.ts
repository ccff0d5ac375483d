import type { FastifyInstance } from 'fastify';
import { smallAnswerBytes } from '../../chat/answer-budget.ts';
import type { Caller } from '../../chat/ports.ts';
import type { SentAnswers } from './sent-answers.ts';

/**
 * Of the heap, for large whole answers that the kernel has not taken yet. Each is there as text and as bytes, outside
 * the heap, where a container has two fifths of its memory for everything.
 */
export const unreadHeapShare = 1 / 16;

/** A response, as far as it matters here. */
export interface UnreadResponse {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

interface UnreadAnswer {
  readonly userId: string;
  readonly response: UnreadResponse;
  readonly bytes: number;
}

const nothing = (): void => undefined;

/**
 * Whole answers on their way to clients, and events of streams whose clients do not read. Each may take half a minute
 * without progress, and they were paid for: none is refused. Where all together are too many, the oldest one of the
 * user with the most of them is let go.
 */
export class UnreadAnswers {
  readonly #limitBytes: number;
  /** In the order they were written. */
  readonly #answers = new Set<UnreadAnswer>();
  #heldBytes = 0;
  /** What the kernel has taken of these, and of all others. */
  readonly sent: SentAnswers;
  /** Told of each one that makes room for others. */
  onLetGo: () => void = () => undefined;

  constructor(limitBytes: number, sent: SentAnswers) {
    this.#limitBytes = limitBytes;
    this.sent = sent;
    sent.onLetGo = () => this.onLetGo();
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Counts so much of an answer until its response closes, or until it is said to have been taken. */
  add(userId: string, response: UnreadResponse, bytes: number): () => void {
    // One that has closed already says so no more.
    if (bytes <= smallAnswerBytes || response.destroyed) return nothing;
    const answer: UnreadAnswer = { userId, response, bytes };
    this.#answers.add(answer);
    this.#heldBytes += bytes;
    const taken = (): void => {
      response.off('close', taken);
      this.#remove(answer);
    };
    response.once('close', taken);
    while (this.#heldBytes > this.#limitBytes) {
      const oldest = this.#oldestOfLargest(answer);
      if (oldest === null) break;
      this.#remove(oldest);
      oldest.response.destroy();
      this.onLetGo();
    }
    return taken;
  }

  #remove(answer: UnreadAnswer): void {
    if (this.#answers.delete(answer)) this.#heldBytes -= answer.bytes;
  }

  /** None that has only just been written: it may be read at once. */
  #oldestOfLargest(latest: UnreadAnswer): UnreadAnswer | null {
    const byUser = new Map<string, { bytes: number; oldest: UnreadAnswer | null }>();
    for (const answer of this.#answers) {
      const own = byUser.get(answer.userId) ?? { bytes: 0, oldest: null };
      if (answer !== latest) own.oldest ??= answer;
      own.bytes += answer.bytes;
      byUser.set(answer.userId, own);
    }
    let largest: { bytes: number; oldest: UnreadAnswer | null } = { bytes: 0, oldest: null };
    for (const own of byUser.values()) {
      if (own.oldest !== null && own.bytes > largest.bytes) largest = own;
    }
    return largest.oldest;
  }
}

function bytesOf(payload: unknown): number {
  if (typeof payload === 'string') return Buffer.byteLength(payload);
  return payload instanceof Uint8Array ? payload.byteLength : 0;
}

/**
 * Counts the whole answers of every route, as they are written, for the account that asked; who has none gets no large
 * ones. What is written past Fastify, a stream or a refusal ahead of its body, is its writer's to count.
 */
export function countUnread(app: FastifyInstance, unread: UnreadAnswers): void {
  unread.sent.watch(app.server);
  app.addHook('preClose', (done) => {
    unread.sent.stop();
    done();
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    // Refusals come before it is known: Fastify's type does not say so.
    const { account }: { readonly account: Pick<Caller, 'userId'> | undefined } = request;
    const bytes = bytesOf(payload);
    unread.sent.wrote(bytes);
    if (account !== undefined) {
      unread.sent.answers(account.userId, reply.raw);
      unread.add(account.userId, reply.raw, bytes);
    }
    done();
  });
}
