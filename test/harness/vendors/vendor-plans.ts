import { anthropicAnswer, anthropicError, anthropicStream, namedSse } from './anthropic-wire.ts';
import type { AnswerContent } from './openai-wire.ts';
import { openAiAnswer, openAiChunk, openAiError, openAiStream, sse } from './openai-wire.ts';
import type { Ending, Gate, ReceivedRequest, Reply, Script, Step } from './vendor-reply.ts';

const json = { 'content-type': 'application/json' } as const;
const eventStream = { 'content-type': 'text/event-stream; charset=utf-8' } as const;

function modelOf(request: ReceivedRequest): string {
  const model = request.body['model'];
  return typeof model === 'string' ? model : 'unknown';
}

function asksUsage(request: ReceivedRequest): boolean {
  const options = request.body['stream_options'] as { include_usage?: boolean } | undefined;
  return options?.include_usage === true;
}

/** The events of a healthy stream in the dialect of the request; usage only where the wire would have it. */
export function streamEvents(request: ReceivedRequest, content: AnswerContent = {}): string[] {
  return request.dialect === 'anthropic'
    ? anthropicStream(modelOf(request), content)
    : openAiStream(modelOf(request), content, asksUsage(request));
}

/** What a vendor answers who is asked which models it has. */
const modelList: Script = () => ({
  status: 200,
  headers: json,
  body: [JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] })],
  ending: 'complete',
});

/** A healthy answer, JSON or SSE as asked; to a question for models, their list. */
export function answer(content: AnswerContent = {}): Script {
  return (request) => {
    if (request.method === 'GET') return modelList(request);
    if (request.stream) {
      return { status: 200, headers: eventStream, body: streamEvents(request, content), ending: 'complete' };
    }
    const counted = { choices: Number(request.body['n'] ?? 1), ...content };
    const body =
      request.dialect === 'anthropic'
        ? anthropicAnswer(modelOf(request), content)
        : openAiAnswer(modelOf(request), counted);
    return { status: 200, headers: json, body: [JSON.stringify(body)], ending: 'complete' };
  };
}

/** An error status in the dialect's own body. */
export function failure(status: number, headers: Record<string, string> = {}, message?: string): Script {
  return (request) => ({
    status,
    headers: { ...json, ...headers },
    body: [
      JSON.stringify(
        request.dialect === 'anthropic' ? anthropicError(status, message) : openAiError(status, message),
      ),
    ],
    ending: 'complete',
  });
}

/** Any status, headers and body. */
export function respond(
  status: number,
  body: string | Buffer | readonly Step[],
  headers: Record<string, string | string[]> = json,
  ending: Ending = 'complete',
): Script {
  const steps = typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body;
  return () => ({ status, headers, body: steps, ending });
}

const silent: Omit<Reply, 'ending'> = { status: null, headers: {}, body: [] };

/** Reads the request and never answers. */
export const hang: Script = () => ({ ...silent, ending: 'hang' });

/** Reads the request, then resets the connection. */
export const reset: Script = () => ({ ...silent, ending: 'reset' });

/** Reads the request, then closes the connection without a byte. */
export const closeSilently: Script = () => ({ ...silent, ending: 'fin' });

/** Status 200 and headers, then silence. */
export const headersThenSilence: Script = (request) => ({
  status: 200,
  headers: request.stream ? eventStream : json,
  body: [],
  ending: 'hang',
});

/** The in-stream error event of the dialect. */
export function errorEvent(request: ReceivedRequest, message = 'fake vendor broke'): string {
  return request.dialect === 'anthropic'
    ? namedSse('error', { error: { type: 'overloaded_error', message } })
    : sse({ error: { message, type: 'server_error', param: null, code: null } });
}

/** How a stream stops short: by silence, reset, FIN inside the body, a clean HTTP end, or an error event. */
export type Break = 'hang' | 'reset' | 'fin' | 'clean-end' | 'error-event';

function broken(request: ReceivedRequest, events: readonly string[], how: Break): Reply {
  const body = how === 'error-event' ? [...events, errorEvent(request)] : events;
  const ending: Ending = how === 'clean-end' || how === 'error-event' ? 'complete' : how;
  return { status: 200, headers: eventStream, body, ending };
}

/** Streams `count` text tokens (`t0 t1 …`), then breaks; the prefix before the first token is included. */
export function tokensThen(count: number, how: Break): Script {
  return (request) => {
    const text = Array.from({ length: count }, (_, index) => `t${index} `);
    const events = streamEvents(request, { text: count === 0 ? ['never sent'] : text });
    const marker = request.dialect === 'anthropic' ? 'text_delta' : '"content":"t';
    const last = events.findLastIndex((event) => count > 0 && event.includes(marker));
    const prefix = request.dialect === 'anthropic' ? 2 : 1;
    return broken(request, events.slice(0, last < 0 ? prefix : last + 1), how);
  };
}

/** Status 200 whose very first event is an error. */
export const firstEventError: Script = (request) => broken(request, [], 'error-event');

/** A role-only chunk (or `message_start`), then an error event. */
export const roleThenError: Script = tokensThen(0, 'error-event');

/** Status 200 with nothing in it. */
export const emptyOk: Script = (request) => ({
  status: 200,
  headers: request.stream ? eventStream : json,
  body: [],
  ending: 'complete',
});

/** Status 200 with a page of HTML, as a misplaced proxy sends it. */
export const htmlOk: Script = respond(200, '<!doctype html><title>Welcome to nginx</title>', {
  'content-type': 'text/html',
});

/** Status 200 whose JSON ends in the middle. */
export const truncatedJson: Script = (request) => ({
  status: 200,
  headers: json,
  body: [JSON.stringify(openAiAnswer(modelOf(request))).slice(0, 60)],
  ending: 'complete',
});

/** A redirect that keeps the method and would carry the key along. */
export function redirect(location: string): Script {
  return respond(307, '', { location });
}

/** A JSON answer of about `bytes` bytes of text. */
export function hugeAnswer(bytes: number): Script {
  return answer({ text: ['x'.repeat(bytes)] });
}

/** A stream of `count` tokens of `bytes` bytes each, made lazily so that back-pressure can be seen. */
export function longStream(count: number, bytes: number): Script {
  return (request) => {
    const piece = sse(openAiChunk(modelOf(request), { content: 'y'.repeat(bytes) }));
    function* events(): Generator<Step> {
      yield sse(openAiChunk(modelOf(request), { role: 'assistant', content: '' }));
      for (let index = 0; index < count; index += 1) yield piece;
      yield sse(openAiChunk(modelOf(request), {}, 'stop'));
      yield sse('[DONE]');
    }
    return { status: 200, headers: eventStream, body: events(), ending: 'complete' };
  };
}

/** Exactly these SSE steps. */
export function streamOf(steps: readonly Step[], ending: Ending = 'complete'): Script {
  return () => ({ status: 200, headers: eventStream, body: steps, ending });
}

/** A stream that stops after its first token until the gate opens. */
export function heldStream(opening: Gate): Script {
  return (request) => {
    const [role = '', first = '', ...rest] = streamEvents(request);
    return streamOf([role, first, opening, ...rest])(request);
  };
}

/** Bytes straight onto the socket, status line included. */
export function rawBytes(bytes: string | Buffer, ending: Ending = 'fin'): Script {
  return () => ({ status: null, headers: {}, body: [bytes], ending, raw: true });
}
