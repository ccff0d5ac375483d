import { wholeText } from './answers.ts';
import type { Answer } from './client.ts';
import type { Fault } from './faults.ts';
import { refusalBody } from './faults.ts';

/**
 * `pass`: the client has the whole answer, or the vendor's own refusal. `safe`: the answer is lost, and the client was
 * told so, in time and in one shape. `fail`: anything else.
 */
export type Verdict = 'pass' | 'safe' | 'fail';

export interface Judgement {
  readonly verdict: Verdict;
  /** In a reader's words. */
  readonly happened: string;
}

interface StreamView {
  readonly text: string;
  readonly hasError: boolean;
  readonly isDone: boolean;
  readonly isNonsense: boolean;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function firstChoice(payload: unknown): Record<string, unknown> {
  const { choices } = record(payload);
  return record(Array.isArray(choices) ? (choices[0] as unknown) : null);
}

/** The stream as a client's parser sees it. */
function readStream(body: string): StreamView {
  let text = '';
  let [hasError, isDone, isNonsense] = [false, false, false];
  for (const event of body.split('\n\n')) {
    const data = /^data: ?(.*)$/m.exec(event)?.[1];
    if (data === undefined) continue;
    if (data === '[DONE]') {
      isDone = true;
      continue;
    }
    const payload = parse(data);
    if (payload === undefined) isNonsense = true;
    if (record(payload)['error'] !== undefined) hasError = true;
    const { content } = record(firstChoice(payload)['delta']);
    if (typeof content === 'string') text += content;
  }
  return { text, hasError, isDone, isNonsense };
}

/** Whether it is an error as clients of ours know it. */
function isErrorBody(text: string): boolean {
  const error = record(record(parse(text))['error']);
  return typeof error['message'] === 'string' && typeof error['type'] === 'string';
}

function judgeStream(answer: Answer): Judgement {
  const seen = readStream(answer.text);
  const shown = `${seen.text.length} characters of text`;
  if (!wholeText.startsWith(seen.text)) return fail('the text is not what the vendor said');
  if (seen.isNonsense) return fail('nonsense reached the client');
  if (seen.hasError && seen.isDone) return fail('an error event, and then [DONE] as if all were well');
  if (seen.hasError) return { verdict: 'safe', happened: `${shown}, then an error event` };
  if (seen.text === wholeText && seen.isDone && answer.ended)
    return { verdict: 'pass', happened: 'the whole answer' };
  if (!answer.ended) return fail(`${shown}, then the connection broke without a word`);
  return fail(`${shown}, and then an end as if it were whole`);
}

function judgeSuccess(answer: Answer, stream: boolean): Judgement {
  if (stream) return judgeStream(answer);
  if (!answer.ended) return fail('status 200, and the connection broke in the middle of the body');
  const choice = firstChoice(parse(answer.text));
  const content = record(choice['message'])['content'];
  // The oversized answer is another text, and whole if it came.
  if (typeof content === 'string' && (content === wholeText || /^x+$/.test(content)))
    return { verdict: 'pass', happened: 'the whole answer' };
  return fail('status 200 without the answer');
}

function judgeRefusal(fault: Fault, answer: Answer): Judgement {
  const { status, retryAfter } = fault.refusal ?? { status: 0 };
  if (answer.status !== status) return fail(`status ${answer.status} where the vendor said ${status}`);
  if (answer.text !== refusalBody(status)) return fail('the vendor’s words did not arrive');
  if (retryAfter !== undefined && answer.headers['retry-after'] !== retryAfter)
    return fail('Retry-After did not arrive');
  return { verdict: 'pass', happened: `status ${status} with the vendor’s words` };
}

/** What to make of what a client saw. `tier`: others could answer, so that a refusal need not reach the client. */
export function judge(fault: Fault, answer: Answer, calls: number, tier: boolean): Judgement {
  const seconds = `${(answer.tookMs / 1000).toFixed(1)} s`;
  if (answer.gaveUp) return fail(`no end within ${seconds}`);
  if (answer.status === null) return fail('the connection broke without an answer');
  if (calls > 1) return fail(`the vendor was asked ${calls} times`);
  const success = answer.status >= 200 && answer.status < 300;
  if (success) return judgeSuccess(answer, fault.stream);
  if (fault.refusal !== undefined && !tier) return judgeRefusal(fault, answer);
  if (!isErrorBody(answer.text)) return fail(`status ${answer.status} without an error in our shape`);
  return { verdict: 'safe', happened: `status ${answer.status} after ${seconds}` };
}

export function fail(happened: string): Judgement {
  return { verdict: 'fail', happened };
}
