import { anthropicAnswer, anthropicStream } from '../harness/vendors/anthropic-wire.ts';
import type { AnswerContent, OpenAiToolCall } from '../harness/vendors/openai-wire.ts';
import { defaultOpenAiUsage, openAiAnswer, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { ReceivedRequest, Script } from '../harness/vendors/vendor-reply.ts';
import type { Route } from './routes.ts';

/** What every vendor says in its own way. */
export interface Saying {
  readonly text?: readonly string[];
  readonly toolCalls?: readonly OpenAiToolCall[];
}

type Json = Record<string, unknown>;
type Fragment = Json & { readonly index: number };

function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,4}/g) ?? [];
}

/** Round by round one piece of each call, as models do that write several calls at once. */
function interleaved(
  calls: readonly OpenAiToolCall[],
  fragment: (index: number, piece: string) => Fragment,
): Fragment[] {
  const rows = calls.map((call) => pieces(call.arguments));
  const rounds = Math.max(0, ...rows.map((row) => row.length));
  const fragments: Fragment[] = [];
  for (let round = 0; round < rounds; round += 1) {
    rows.forEach((row, index) => {
      const piece = row[round];
      if (piece !== undefined) fragments.push(fragment(index, piece));
    });
  }
  return fragments;
}

function opening(call: OpenAiToolCall, index: number, argumentsText = ''): Fragment {
  return {
    index,
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: argumentsText },
  };
}

/** How one vendor of OpenAI shape differs from the others. */
interface Manner {
  /** Fields of every delta. */
  readonly delta?: Json;
  /** Fields of every chunk. */
  readonly chunk?: Json;
  readonly finishText: string;
  readonly finishTools: string;
  readonly usage: 'own chunk' | 'finish chunk';
  readonly usageDetails?: Json;
  frame(event: string): string;
  fragments(calls: readonly OpenAiToolCall[]): Fragment[];
  /** Tool call of a JSON answer. */
  toolCall?(call: OpenAiToolCall): Json;
}

/** As seen on the wire: OpenAI itself, Together, Sarvam, and servers such as vLLM and llama.cpp. */
const manners: Readonly<Record<Exclude<Route['vendor'], 'anthropic'>, Manner>> = {
  openai: {
    chunk: { usage: null, obfuscation: 'kQ3' },
    finishText: 'stop',
    finishTools: 'tool_calls',
    usage: 'own chunk',
    frame: (event) => event,
    fragments: (calls) => [
      ...calls.map((call, index) => opening(call, index)),
      ...interleaved(calls, (index, piece) => ({ index, function: { arguments: piece } })),
    ],
  },
  together: {
    finishText: 'eos',
    finishTools: 'tool_calls',
    usage: 'finish chunk',
    frame: (event) => event,
    fragments: (calls) => calls.map((call, index) => opening(call, index, call.arguments)),
  },
  sarvam: {
    delta: { role: 'assistant', reasoning_content: null },
    finishText: 'stop',
    finishTools: 'tool_calls',
    usage: 'own chunk',
    usageDetails: { prompt_tokens_details: null },
    frame: (event) => event,
    // Id, type and an empty name again and again.
    fragments: (calls) => [
      ...calls.map((call, index) => opening(call, index)),
      ...interleaved(calls, (index, piece) => ({
        index,
        id: calls[index]?.id,
        type: 'function',
        function: { name: '', arguments: piece },
      })),
    ],
  },
  self_hosted: {
    finishText: 'stop',
    finishTools: 'stop',
    usage: 'finish chunk',
    frame: (event) => `: keep-alive\r\n\r\n${event.replaceAll('\n', '\r\n')}`,
    // Counted from 1, without a type.
    fragments: (calls) => [
      ...calls.map((call, index) => ({
        index: index + 1,
        id: call.id,
        function: { name: call.name, arguments: '' },
      })),
      ...interleaved(calls, (index, piece) => ({ index: index + 1, function: { arguments: piece } })),
    ],
    // Arguments as an object, or none at all.
    toolCall: (call) => ({
      id: call.id,
      function: {
        name: call.name,
        ...(call.arguments === '' ? {} : { arguments: JSON.parse(call.arguments) as unknown }),
      },
    }),
  },
};

function usageOf(manner: Manner): Json {
  return { ...defaultOpenAiUsage, ...manner.usageDetails };
}

function streamOf(manner: Manner, model: string, saying: Saying): string[] {
  const calls = saying.toolCalls ?? [];
  const event = (delta: Json, finish: string | null = null, more: Json = {}) =>
    manner.frame(
      sse({ ...openAiChunk(model, { ...delta, ...manner.delta }, finish), ...manner.chunk, ...more }),
    );
  const counted = { usage: usageOf(manner) };
  const inFinish = manner.usage === 'finish chunk';
  return [
    event({ role: 'assistant', content: '' }),
    ...(saying.text ?? []).map((piece) => event({ content: piece })),
    ...manner.fragments(calls).map((fragment) => event({ tool_calls: [fragment] })),
    event({}, calls.length > 0 ? manner.finishTools : manner.finishText, inFinish ? counted : {}),
    ...(inFinish ? [] : [manner.frame(sse({ ...openAiChunk(model, {}), choices: [], ...counted }))]),
    manner.frame(sse('[DONE]')),
  ];
}

function answerOf(manner: Manner, model: string, saying: Saying): Json {
  const calls = saying.toolCalls ?? [];
  const finishReason = calls.length > 0 ? manner.finishTools : manner.finishText;
  const answer = openAiAnswer(model, { ...saying, finishReason, usage: usageOf(manner) });
  const [choice] = answer['choices'] as { message: Json }[];
  if (calls.length > 0 && manner.toolCall !== undefined && choice !== undefined) {
    choice.message['tool_calls'] = calls.map(manner.toolCall);
  }
  return answer;
}

function anthropicContent({ text, toolCalls }: Saying, stream: boolean): AnswerContent {
  // A streamed call without arguments has one empty piece; a whole one has an empty object.
  const calls = toolCalls?.map((call) => ({ ...call, arguments: call.arguments || (stream ? '' : '{}') }));
  return { ...(text && { text }), ...(calls && { toolCalls: calls }) };
}

/** The vendor says it in its own manner, as JSON or as a stream. */
export function vendorAnswer(vendor: Route['vendor'], saying: Saying): Script {
  const body = (request: ReceivedRequest): readonly string[] => {
    const model = String(request.body['model']);
    if (vendor === 'anthropic') {
      const content = anthropicContent(saying, request.stream);
      return request.stream
        ? anthropicStream(model, content)
        : [JSON.stringify(anthropicAnswer(model, content))];
    }
    const manner = manners[vendor];
    return request.stream
      ? streamOf(manner, model, saying)
      : [JSON.stringify(answerOf(manner, model, saying))];
  };
  return (request) => ({
    status: 200,
    headers: { 'content-type': request.stream ? 'text/event-stream' : 'application/json' },
    body: body(request),
    ending: 'complete',
  });
}
