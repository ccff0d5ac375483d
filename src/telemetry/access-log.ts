import type { Logger } from 'pino';
import type { ChatCall } from '../core/chat-call.ts';
import { formatMicroUsd } from '../core/cost.ts';
import type { LogRow } from '../core/log-row.ts';

/** How the answer ended, in the words of `gw_streams_total`; `refused`: there was none. */
function endOf(row: LogRow): string {
  switch (row.status) {
    case 'success':
      return 'complete';
    case 'client_closed':
      return 'client_abort';
    case 'incomplete':
      return row.error?.startsWith('service_unavailable_error') === true ? 'drain_cut' : 'upstream_error';
    case 'error':
      return 'refused';
  }
}

/** One line per chat request, at its settlement. No text that a client or a vendor wrote is in it. */
export function logAccess(log: Logger, call: ChatCall, row: LogRow): void {
  const { trace } = call;
  log.info(
    {
      request_id: row.requestId,
      user_id: row.userId,
      mode: row.mode,
      provider: row.provider,
      model: row.model,
      status: row.status,
      end: endOf(row),
      stream: row.stream,
      attempts: row.attempts.length,
      ttft_ms: row.ttftMs,
      latency_ms: row.latencyMs,
      input_tokens: row.usage.inputTokens,
      output_tokens: row.usage.outputTokens,
      cost_usd: formatMicroUsd(row.costMicroUsd),
      trace_id: trace?.traceId,
      span_id: trace?.spanId,
      trace_flags: trace === null ? undefined : trace.sampled ? '01' : '00',
    },
    'chat',
  );
}
