import type { ChatCompletion } from '../core/answer/chat-completion.ts';
import { chunksFromCompletion } from '../core/answer/completion-chunks.ts';
import { errorEvent } from '../core/error-body.ts';
import type { ServiceUnavailableError } from '../core/errors.ts';
import { draining } from '../core/errors.ts';
import { requestDueMs } from '../core/request/chat-call.ts';
import type { SettledFacts } from '../core/settled-request.ts';
import { DueTimer } from '../due-timer.ts';
import type { Client } from './client-stream.ts';
import { clientStallMs } from './exchange-limits.ts';
import type { Clock } from './ports.ts';
import type { RequestContext } from './request-context.ts';

/** The error of an answer that the end of the process cuts. */
export const cutByDrain = (): ServiceUnavailableError => draining('; the answer is incomplete');

/** A whole answer that goes out as a stream. */
export interface Replay {
  readonly completion: ChatCompletion;
  /** What it takes of the memory while it goes out. */
  readonly bytes: number;
  /** What follows its own chunks. */
  readonly last: string;
  /** What its settlement says beside how it ended. */
  readonly facts: SettledFacts;
}

/**
 * A whole answer as a stream, as fast as the client takes it and no faster: what it has not asked for is not made
 * yet. Settled before the last bytes.
 */
export function replay(context: RequestContext, { completion, bytes, last, facts }: Replay): Promise<void> {
  const { client, deps } = context;
  client.stream.open();
  client.stream.keeps(bytes);
  const sent = writeEvents(client, completion, deps.clock, requestDueMs(context.call));
  return sent.then(() => endReplay(context, last, facts));
}

/** Apart from what follows: nobody keeps the values while the row is written. */
async function writeEvents(
  client: Client,
  completion: ChatCompletion,
  clock: Clock,
  dueMs: number,
): Promise<void> {
  for (const event of chunksFromCompletion(completion)) {
    if (client.signal.aborted) break;
    if (!client.stream.write(event)) await caughtUp(client, clock.monotonicMs, dueMs);
  }
}

async function endReplay(
  { call, client, settlement }: RequestContext,
  last: string,
  facts: SettledFacts,
): Promise<void> {
  if (!client.signal.aborted) {
    await settlement.settle({ status: 'success' }, facts);
    client.stream.end(last);
  } else if (client.signal.reason === 'drain') {
    const error = cutByDrain();
    await settlement.settle({ status: 'incomplete', cut: 'drain_cut', error }, facts);
    client.stream.end(errorEvent(error, call.requestId));
  } else {
    await settlement.settle({ status: 'client_closed' }, facts);
    client.stream.destroy();
  }
}

/**
 * Resolves once the client has caught up, or is gone: one that takes nothing for `clientStallMs`, or takes longer than
 * its request may, is let go.
 */
function caughtUp({ stream, signal }: Client, monotonicMs: () => number, dueMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      patience.clear();
      signal.removeEventListener('abort', end);
      resolve();
    };
    // Its signal follows from that.
    const patience = new DueTimer(monotonicMs, () => stream.destroy());
    patience.setDue(Math.min(monotonicMs() + clientStallMs, dueMs));
    signal.addEventListener('abort', end);
    stream.onDrain(end, null);
  });
}
