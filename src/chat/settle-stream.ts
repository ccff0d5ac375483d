import type { Usage } from '../core/answer/usage.ts';
import type { VendorAnswer } from '../core/attempt-record.ts';
import type { GatewayError } from '../core/errors.ts';
import { ApiError, ProviderError } from '../core/errors.ts';
import type { CutCause, SettledFacts } from '../core/settled-request.ts';
import type { OpenAttempt } from './open-attempt.ts';
import type { OpenStream, StreamEnd } from './open-stream.ts';
import { cutByDrain } from './replay.ts';
import type { RequestContext } from './request-context.ts';
import type { StreamEnding } from './telemetry-port.ts';

/** What is known of a stream at its end; times in milliseconds. */
export interface StreamFacts {
  readonly latencyMs: number;
  readonly ttftMs: number;
  readonly firstTokenMs: number;
  readonly usage: Usage;
  readonly costMicroUsd: bigint;
  readonly came: NonNullable<SettledFacts['came']>;
}

/** A stream whose last bytes are still to be sent: a clean end, an error, or nothing since nobody is left. */
export type ClosedStream =
  | { readonly kind: 'whole'; readonly ending: Extract<StreamEnding, 'complete' | 'client_abort'> }
  | { readonly kind: 'cut'; readonly ending: CutCause; readonly error: GatewayError }
  | { readonly kind: 'left'; readonly ending: Extract<StreamEnding, 'client_abort'> };

/** What the vendor said of its own stream. */
function vendorAnswer({ translator }: OpenStream): VendorAnswer {
  const { id, model, finishReasons } = translator;
  return { id, model, finishReasons };
}

/**
 * Ends the attempt behind a stream and settles its request, before any of the last bytes. A stream that did not end
 * well can never be taken for a whole answer. Throws where a bug of ours cut it.
 */
export async function settleStream(
  { settlement, client }: RequestContext,
  stream: OpenStream,
  end: StreamEnd,
  attempt: OpenAttempt,
  facts: StreamFacts,
): Promise<ClosedStream> {
  const { firstTokenMs, usage } = facts;
  const answerFacts = { firstTokenMs, usage, answer: vendorAnswer(stream) };
  switch (end.kind) {
    case 'complete': {
      attempt.served(answerFacts);
      const gone = client.signal.reason === 'client-gone';
      await settlement.settle({ status: gone ? 'client_closed' : 'success' }, facts);
      return { kind: 'whole', ending: gone ? 'client_abort' : 'complete' };
    }
    case 'failed': {
      attempt.cut(end.reason, answerFacts);
      const text = `The answer is incomplete: ${end.reason}`;
      const error = new ProviderError(text, { code: 'upstream_interrupted' });
      return await settleCut(settlement, end.idle === true ? 'idle_timeout' : 'upstream_error', error, facts);
    }
    case 'cancelled':
      attempt.cancelled(end.reason, answerFacts);
      if (end.reason === 'drain') return await settleCut(settlement, 'drain_cut', cutByDrain(), facts);
      await settlement.settle({ status: 'client_closed' }, facts);
      return { kind: 'left', ending: 'client_abort' };
    case 'broken': {
      attempt.cut('a bug of the gateway', answerFacts);
      const error = new ApiError(end.cause);
      await settlement.settle({ status: 'error', error }, facts);
      throw error;
    }
  }
}

async function settleCut(
  settlement: RequestContext['settlement'],
  cut: CutCause,
  error: GatewayError,
  facts: StreamFacts,
): Promise<ClosedStream> {
  await settlement.settle({ status: 'incomplete', cut, error }, facts);
  return { kind: 'cut', ending: cut, error };
}
