import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { providerNames } from '../../src/core/provider-name.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { chatRequestSchema } from '../../src/core/request/chat-request.ts';
import { needsOf } from '../../src/core/request/request-needs.ts';
import { permissiveFacts } from '../../src/core/tables/model-facts.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor, differingModels } from './fixtures.ts';

/**
 * What the planner lets through to a vendor is carried whole: a translation may leave out sampling fields and
 * labels, and names them. Anything else would be an answer to a question that was not asked.
 */

const samplingAndLabels = new Set([
  ...['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'seed', 'user'],
  // How the answer is delivered; we ask for usage ourselves.
  'stream_options',
  'messages[].name',
  'tools[].function.strict',
  // Of those that only operators let through.
  ...['logit_bias', 'reasoning_effort'],
]);
/** Says nothing new, so it may go: an empty list, the default, a choice where nothing is offered. */
const saysNothing = {
  tools: (request: ChatRequest) => request.tools?.length === 0,
  tool_choice: (request: ChatRequest) =>
    (request.tools?.length ?? 0) === 0 && (request.tool_choice === 'auto' || request.tool_choice === 'none'),
  logprobs: (request: ChatRequest) => request['logprobs'] === false,
  top_logprobs: (request: ChatRequest) => request['top_logprobs'] === 0,
  // What is so anyhow, and of a tool that is named: nobody calls a second one.
  parallel_tool_calls: (request: ChatRequest) =>
    request.parallel_tool_calls !== false ||
    (request.tools?.length ?? 0) === 0 ||
    (typeof request.tool_choice === 'object' && request.tool_choice['type'] === 'function'),
} as const;

const mayBeLeftOut = (name: string, request: ChatRequest): boolean =>
  samplingAndLabels.has(name) || saysNothing[name as keyof typeof saysNothing]?.(request) === true;

const tool = { type: 'function', function: { name: 'find_marker', parameters: { type: 'object' } } };
const schema = { type: 'object', title: 'marker' };
const named = { type: 'function', function: { name: 'find_marker' } };
const turn = { role: 'user', content: 'Hi' };
const call = { id: 'c1', type: 'function', function: { name: 'find_marker', arguments: '{}' } };

/** A field that changes the answer, and what of it must be found in the vendor's request. */
const asked: readonly [name: string, fields: Record<string, unknown>, marker: RegExp][] = [
  ['n', { n: 3 }, /"n":3/],
  ['one stop sequence', { stop: 'marker' }, /"marker"/],
  ['several stop sequences', { stop: ['a', 'marker'] }, /"marker"/],
  ['a stop sequence of white space', { stop: ['END', '\n\n'] }, /"\\n\\n"/],
  ['json_object', { response_format: { type: 'json_object' } }, /"json_object"/],
  [
    'json_schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } },
    /"title":"marker"/,
  ],
  [
    'json_schema without a schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
    /"json_schema"/,
  ],
  ['a format we do not know', { response_format: { type: 'regex', pattern: 'marker' } }, /"marker"/],
  ['tools', { tools: [tool] }, /find_marker/],
  ['a forced tool', { tools: [tool], tool_choice: 'required' }, /"tool_choice":(?:"required"|.*"any")/],
  ['a named tool', { tools: [tool], tool_choice: named }, /"tool_choice":.*find_marker/],
  [
    'one tool call at a time',
    { tools: [tool], parallel_tool_calls: false },
    /"(?:parallel_tool_calls":false|disable_parallel_tool_use":true)/,
  ],
  ['no tool', { tools: [tool], tool_choice: 'none' }, /"tool_choice":.*none/],
  [
    'a choice among some tools',
    {
      tools: [tool],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named] } },
    },
    /allowed_tools/,
  ],
  ['a forced tool where there is none', { tool_choice: 'required' }, /"tool_choice":/],
  [
    'calls and results so far',
    {
      messages: [
        turn,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: 'found it' },
      ],
      tools: [tool],
    },
    /c1.*found it/,
  ],
  [
    'a refusal in the conversation',
    { messages: [turn, { role: 'assistant', content: null, refusal: 'I will not.' }, turn] },
    /I will not\./,
  ],
  [
    'an image by address',
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'https://marker.example/a.png' } }],
        },
      ],
    },
    /marker\.example/,
  ],
  ['the limit of tokens', { max_tokens: 77 }, /:77\b/],
  ['the limit of tokens by its newer name', { max_completion_tokens: 77 }, /:77\b/],
  ['probabilities', { logprobs: true }, /"logprobs":true/],
  ['probabilities of other words', { logprobs: true, top_logprobs: 3 }, /"top_logprobs":3/],
  ['another modality', { modalities: ['text', 'marker'] }, /"marker"/],
  ['functions by their older name', { functions: [{ name: 'find_marker' }] }, /find_marker/],
  [
    'a beginning of the answer',
    { messages: [turn, { role: 'assistant', content: 'Once upon' }] },
    /Once upon/,
  ],
];

function requestOf(fields: Record<string, unknown>): ChatRequest {
  const known = Object.entries(fields).filter(([name]) => name in chatRequestSchema.shape);
  const request = { model: 'gw/balanced', messages: [turn], ...Object.fromEntries(known) };
  // The others are such as operators let through.
  return { ...fields, ...chatRequestSchema.parse(request) } as ChatRequest;
}

const everyModel = providerNames.flatMap((provider) => [
  ...differingModels(provider).map((model) => ({
    provider,
    model,
    context: contextFor(provider, { model }),
  })),
  // Tables that say nothing of a model must not make its translation lossy either.
  { provider, model: 'no table knows', context: { ...contextFor(provider, {}), facts: permissiveFacts } },
]);

describe.each(everyModel)('$provider: $model', ({ provider, context }) => {
  const { facts } = context;
  const { lacks, translateRequest } = providers[provider];
  // An override is sent whatever the tables say of its model.
  const isLacked = (request: ChatRequest): boolean =>
    needsOf(request).features.some(({ feature }) => lacks(facts).includes(feature));

  test.each(asked)('%s is carried over, or never asked of it', (_name, fields, marker) => {
    for (const stream of [false, true]) {
      const request = requestOf({ ...fields, stream });
      if (isLacked(request)) continue;
      const upstream = translateRequest(request, context);
      expect(upstream.body).toMatch(marker);
      expect(upstream.dropped).toEqual([]);
    }
  });

  test('of any mixture only sampling fields and labels are left out', () => {
    const parts = fc.subarray([
      ...asked.map(([, fields]) => fields),
      { temperature: 2, top_p: 0.5 },
      { presence_penalty: 1, frequency_penalty: 1, seed: 7, user: 'u-1' },
      { stream: true, stream_options: { include_usage: true } },
      { tools: [], tool_choice: 'auto', parallel_tool_calls: false },
      { n: 1, parallel_tool_calls: true },
      { logprobs: false, top_logprobs: 0 },
      { logit_bias: { 5: -100 }, reasoning_effort: 'low' },
    ]);
    fc.assert(
      fc.property(parts, (chosen) => {
        const request = requestOf(Object.assign({}, ...chosen) as Record<string, unknown>);
        if (isLacked(request)) return;
        const { dropped } = translateRequest(request, context);
        expect(dropped.filter((name) => !mayBeLeftOut(name, request))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
