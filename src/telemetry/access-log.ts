import type { StreamEnding } from '../chat/telemetry-port.ts';
import { formatMicroUsd } from '../core/answer/cost.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import { shownModel, shownProvider } from '../core/settled-request.ts';

/** How the answer ended, in the words of `gw_streams_total`; `refused`: there was none. */
function endOf({ end, ttftMs }: SettledRequest): StreamEnding | 'refused' {
  switch (end.status) {
    case 'success':
      return 'complete';
    case 'client_closed':
      return 'client_abort';
    case 'incomplete':
      return end.cut;
    case 'error':
      // A stream that a bug of ours cut had begun.
      return ttftMs === null ? 'refused' : 'upstream_error';
  }
}

/**
 * One line of JSON per chat request, at its settlement, in the form of the other log lines. Put together by
 * hand: it is the one line that every request pays for, and so costs a third of what the logger takes. Of texts
 * that a client chose only the model's name is in it, and the request id, which has a checked form.
 */
export function accessLine(call: ChatCall, settled: SettledRequest, time: string): string {
  const { trace } = call;
  const traced =
    trace === null
      ? ''
      : `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}","trace_flags":"0${trace.sampled ? 1 : 0}"`;
  return (
    `{"level":"info","time":"${time}","request_id":"${settled.requestId}","user_id":"${settled.userId}"` +
    `,"mode":"${settled.mode}","provider":"${shownProvider(settled)}","model":${JSON.stringify(shownModel(settled))}` +
    `,"status":"${settled.end.status}","end":"${endOf(settled)}","stream":${settled.stream},"attempts":${settled.tries}` +
    `,"ttft_ms":${settled.ttftMs},"latency_ms":${settled.latencyMs}` +
    `,"input_tokens":${settled.usage.inputTokens},"output_tokens":${settled.usage.outputTokens}` +
    `,"cost_usd":"${formatMicroUsd(settled.costMicroUsd)}"${traced},"msg":"chat"}\n`
  );
}

const millisecondsAt = '2026-01-01T00:00:00.'.length;

/** ISO times of lines, of which all of one second have the same beginning: a Date for each costs 1 µs. */
export class LineTimes {
  #second = Number.NaN;
  #beginning = '';

  text(wallMs: number): string {
    const second = Math.floor(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#beginning = new Date(wallMs).toISOString().slice(0, millisecondsAt);
    }
    return `${this.#beginning}${String(wallMs - second * 1000).padStart(3, '0')}Z`;
  }
}
