import { upstreamStalled } from '../chat/open-stream.ts';
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
      if (row.error?.startsWith('service_unavailable_error') === true) return 'drain_cut';
      return row.error?.endsWith(upstreamStalled) === true ? 'idle_timeout' : 'upstream_error';
    case 'error':
      return 'refused';
  }
}

/**
 * One line of JSON per chat request, at its settlement, in the form of the other log lines. Put together by
 * hand: it is the one line that every request pays for, and so costs a third of what the logger takes. Of texts
 * that a client chose only the model's name is in it, and the request id, which has a checked form.
 */
export function accessLine(call: ChatCall, row: LogRow, time: string): string {
  const { trace } = call;
  const traced =
    trace === null
      ? ''
      : `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}","trace_flags":"0${trace.sampled ? 1 : 0}"`;
  return (
    `{"level":"info","time":"${time}","request_id":"${row.requestId}","user_id":"${row.userId}"` +
    `,"mode":"${row.mode}","provider":"${row.provider}","model":${JSON.stringify(row.model)}` +
    `,"status":"${row.status}","end":"${endOf(row)}","stream":${row.stream},"attempts":${row.tries}` +
    `,"ttft_ms":${row.ttftMs},"latency_ms":${row.latencyMs}` +
    `,"input_tokens":${row.usage.inputTokens},"output_tokens":${row.usage.outputTokens}` +
    `,"cost_usd":"${formatMicroUsd(row.costMicroUsd)}"${traced},"msg":"chat"}\n`
  );
}
