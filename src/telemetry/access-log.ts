import type { StreamEnding } from '../chat/telemetry-port.ts';
import { formatMicroUsd } from '../core/answer/cost.ts';
import { escapeUnprintable } from '../core/json/unprintable.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { RequestStatus, SettledRequest } from '../core/settled-request.ts';
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

/** More models than any deployment has; those of overrides are chosen by callers. */
const maxModels = 256;

interface ModelText {
  readonly mode: string;
  readonly provider: string;
  readonly text: string;
}

/** In one piece: what `+` joins is copied piece by piece, and with each line anew. */
const joined = (...parts: readonly (string | number | boolean)[]): string => parts.join('');

/** Up to the first number that is each request's own. */
const endText = (
  status: RequestStatus,
  end: StreamEnding | 'refused',
  stream: boolean,
  tries: number,
): string =>
  joined(
    ',"status":"',
    status,
    '","end":"',
    end,
    '","stream":',
    stream,
    ',"attempts":',
    tries,
    ',"ttft_ms":',
  );

/** Of nearly all requests: answers and streams by how many were tried, which is none of one from the cache. */
const usualAnswers = [0, 1].map((tries) => endText('success', 'complete', false, tries));
const usualStreams = [0, 1].map((tries) => endText('success', 'complete', true, tries));

function endTextOf(settled: SettledRequest): string {
  const { end, stream, tries } = settled;
  const usual = (stream ? usualStreams : usualAnswers)[tries];
  if (end.status === 'success' && usual !== undefined) return usual;
  return endText(end.status, endOf(settled), stream, tries);
}

/**
 * One line of JSON per chat request, at its settlement, in the form of the other log lines. Put together by
 * hand: it is the one line that every request pays for. What is the same for many requests is put together once, which
 * saves 0.3 µs a line. Of texts that a client chose only the model's name is in it, and the request id, which has a
 * checked form.
 */
export class AccessLines {
  readonly #times = new LineTimes();
  /** By model: its text in the line before. */
  readonly #models = new Map<string, ModelText>();

  /** With its line feed. */
  of(call: ChatCall, settled: SettledRequest, wallMs: number): string {
    const { trace } = call;
    const traced =
      trace === null
        ? ''
        : `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}","trace_flags":"0${trace.sampled ? 1 : 0}"`;
    return (
      `{"level":"info","time":"${this.#times.text(wallMs)}","request_id":"${settled.requestId}","user_id":"${settled.userId}` +
      `${this.#modelText(settled)}${endTextOf(settled)}${settled.ttftMs},"latency_ms":${settled.latencyMs}` +
      `,"input_tokens":${settled.usage.inputTokens},"output_tokens":${settled.usage.outputTokens}` +
      `,"cost_usd":"${formatMicroUsd(settled.costMicroUsd)}"${traced},"msg":"chat"}\n`
    );
  }

  #modelText(settled: SettledRequest): string {
    const { mode } = settled;
    const provider = shownProvider(settled);
    const model = shownModel(settled);
    const known = this.#models.get(model);
    if (known !== undefined && known.mode === mode && known.provider === provider) return known.text;
    if (this.#models.size >= maxModels) this.#models.clear();
    const shown = escapeUnprintable(JSON.stringify(model));
    const text = joined('","mode":"', mode, '","provider":"', provider, '","model":', shown);
    this.#models.set(model, { mode, provider, text });
    return text;
  }
}

const millisecondsAt = '2026-01-01T00:00:00.'.length;

/** ISO times of lines, of which all of one second have the same beginning: a Date for each costs 1 µs. */
class LineTimes {
  #second = Number.NaN;
  #beginning = '';
  #millisecond = Number.NaN;
  #text = '';

  text(wallMs: number): string {
    if (wallMs === this.#millisecond) return this.#text;
    this.#millisecond = wallMs;
    const second = Math.floor(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#beginning = new Date(wallMs).toISOString().slice(0, millisecondsAt);
    }
    this.#text = `${this.#beginning}${String(wallMs - second * 1000).padStart(3, '0')}Z`;
    return this.#text;
  }
}
