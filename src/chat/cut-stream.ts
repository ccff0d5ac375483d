import { errorEvent } from '../core/error-body.ts';
import { ApiError, ProviderError } from '../core/errors.ts';
import type { Usage } from '../core/usage.ts';
import type { Serving } from './fallback.ts';
import { recordOf } from './fallback.ts';
import type { OpenStream, StreamEnd } from './open-stream.ts';
import { clientClosed, cutByDrain } from './replay.ts';
import type { Serve } from './serve.ts';
import type { StreamEnding, VendorAnswer } from './telemetry-port.ts';

/** What the vendor said of its own stream. */
export function vendorAnswer({ translator }: OpenStream): VendorAnswer {
  const { id, model, finishReason } = translator;
  return { id, model, finishReasons: finishReason === null ? [] : [finishReason] };
}

/** A stream that did not end well: its row says so, and the client can never take it for a whole answer. */
export async function cutStream(
  serve: Serve,
  stream: OpenStream,
  end: Exclude<StreamEnd, { kind: 'complete' }>,
  serving: Serving,
  facts: {
    latencyMs: number;
    ttftMs: number;
    firstTokenMs: number;
    usage: Usage;
    costMicroUsd: bigint;
  },
): Promise<void> {
  const { call, settlement, client, io } = serve;
  const { firstTokenMs, ...row } = facts;
  const reason = end.kind === 'broken' ? 'a bug of the gateway' : end.reason;
  const durationMs = io.clock.monotonicMs() - serving.startedAtMs;
  settlement.ledger.add(serving, 200, `cut: ${reason}`, durationMs);
  io.telemetry.attemptEnded(call, {
    ...recordOf(serving),
    end: end.kind === 'cancelled' ? 'aborted' : 'failed',
    failure: null,
    durationMs,
    firstTokenMs,
    usage: facts.usage,
    answer: vendorAnswer(stream),
  });
  if (end.kind === 'cancelled' && end.reason === 'client-gone') {
    await settlement.settle({ ...row, status: 'client_closed', error: clientClosed });
    io.telemetry.streamClosed('client_abort', stream.stalledMs);
    client.stream.destroy();
    return;
  }
  if (end.kind === 'broken') {
    const error = new ApiError(end.cause);
    await settlement.settle({ ...row, status: 'error', error: `${error.type}: ${error.message}` });
    io.telemetry.streamClosed('upstream_error', stream.stalledMs);
    throw error;
  }
  const error =
    end.kind === 'cancelled'
      ? cutByDrain()
      : new ProviderError(`The answer is incomplete: ${end.reason}`, { code: 'upstream_interrupted' });
  await settlement.settle({ ...row, status: 'incomplete', error: `${error.type}: ${error.message}` });
  io.telemetry.streamClosed(endingOf(end), stream.stalledMs);
  client.stream.end(errorEvent(error, call.requestId));
}

function endingOf(end: Exclude<StreamEnd, { kind: 'complete' | 'broken' }>): StreamEnding {
  if (end.kind === 'cancelled') return 'drain_cut';
  return end.idle === true ? 'idle_timeout' : 'upstream_error';
}
