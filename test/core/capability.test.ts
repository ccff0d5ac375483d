import { describe, expect, test } from 'vitest';
import { featureText, missingFeature } from '../../src/core/capability.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { needsOf } from '../../src/core/request/request-needs.ts';
import type { ModelFacts } from '../../src/core/tables/model-facts.ts';
import { permissiveFacts } from '../../src/core/tables/model-facts.ts';

const request = (fields: object): ChatRequest =>
  ({ model: 'gw/cheap', messages: [{ role: 'user', content: 'hi' }], ...fields }) as ChatRequest;
const content = (...parts: object[]): object => ({ messages: [{ role: 'user', content: parts }] });
const history = (message: object): object => ({ messages: [{ role: 'user', content: 'hi' }, message] });
const image = (url: unknown): object => ({ type: 'image_url', image_url: { url } });

describe('a request needs', () => {
  test.each<[name: string, fields: object, needs: string[]]>([
    ['nothing when it is plain text', {}, []],
    ['sight for an image in the message', content(image('data:image/png;base64,AA')), ['vision messages']],
    [
      'sight and fetching for an image by URL',
      content(image('https://a/b.png')),
      ['vision messages', 'image_urls messages'],
    ],
    [
      'fetching for an image given as bare text',
      content({ type: 'image_url', image_url: 'http://a' }),
      ['vision messages', 'image_urls messages'],
    ],
    ['sight for an image without an address', content({ type: 'image_url' }), ['vision messages']],
    ['tools when it offers some', { tools: [{ type: 'function' }] }, ['tools tools']],
    ['no tools for an empty list', { tools: [] }, []],
    ['nothing for tool_choice auto', { tool_choice: 'auto' }, []],
    ['a forced tool for tool_choice required', { tool_choice: 'required' }, ['forced_tool tool_choice']],
    [
      'a forced tool for a named function',
      { tool_choice: { type: 'function' } },
      ['forced_tool tool_choice'],
    ],
    [
      'another kind of choice',
      { tool_choice: { type: 'allowed_tools' } },
      ['forced_tool tool_choice', 'other_tool_choice tool_choice'],
    ],
    [
      'one call at a time',
      { tools: [{}], parallel_tool_calls: false },
      ['tools tools', 'single_tool_call parallel_tool_calls'],
    ],
    [
      'no such thing of a tool that is named: clients send it with every schema',
      {
        tools: [{}],
        tool_choice: { type: 'function', function: { name: 'f' } },
        parallel_tool_calls: false,
      },
      ['tools tools', 'forced_tool tool_choice'],
    ],
    ['nothing for one call at a time of no tools', { parallel_tool_calls: false }, []],
    ['nothing for calls in parallel', { tools: [], parallel_tool_calls: true }, []],
    ['tools for calls made before', history({ role: 'assistant', tool_calls: [{}] }), ['tools messages']],
    ['tools for results of calls', history({ role: 'tool', content: 'x' }), ['tools messages']],
    ['no tools for an empty list of calls', history({ role: 'assistant', tool_calls: [] }), []],
    ['a continuation', history({ role: 'assistant', content: 'Once' }), ['prefill messages']],
    [
      'a continuation beside an empty list of calls',
      history({ role: 'assistant', content: 'Once', tool_calls: [] }),
      ['prefill messages'],
    ],
    ['no continuation of nothing', history({ role: 'assistant', content: '' }), []],
    ['a stop', { stop: ['END'] }, ['stop stop']],
    ['a stop at white space', { stop: '\n' }, ['stop stop', 'blank_stop stop']],
    ['no stop at nothing', { stop: ['', ''] }, []],
    ['nothing for text format', { response_format: { type: 'text' } }, []],
    ['JSON', { response_format: { type: 'json_object' } }, ['json_object response_format']],
    [
      'a schema',
      { response_format: { type: 'json_schema', json_schema: { schema: {} } } },
      ['json_schema response_format'],
    ],
    [
      'any JSON for a schema that is not there',
      { response_format: { type: 'json_schema' } },
      ['json_schema response_format', 'json_object response_format'],
    ],
    [
      'a format we do not know',
      { response_format: { type: 'grammar' } },
      ['other_response_format response_format'],
    ],
    ['probabilities', { logprobs: true }, ['logprobs logprobs']],
    ['probabilities as Together counts them', { logprobs: 3 }, ['logprobs logprobs']],
    [
      'those of other words too',
      { logprobs: true, top_logprobs: 2 },
      ['logprobs logprobs', 'logprobs top_logprobs'],
    ],
    ['no probabilities where they are off', { logprobs: false, top_logprobs: 0 }, []],
    ['none for a null that an operator lets through', { logprobs: null, modalities: null }, []],
    ['sound', { modalities: ['text', 'audio'] }, ['other_modalities modalities']],
    ['nothing for text', { modalities: ['text'] }, []],
    ['functions', { functions: [{ name: 'f' }] }, ['functions functions']],
    ['no functions for an empty list', { functions: [] }, []],
    ['a search', { web_search_options: {} }, ['web_search web_search_options']],
    ['nothing for other fields that are let through', { logit_bias: { 5: 1 }, reasoning_effort: 'low' }, []],
    ['no more for n of one', { n: 1 }, []],
    ['several choices for n of two', { n: 2 }, ['multiple_choices n']],
    [
      'all of it, in the order in which a refusal names it',
      { ...content(image('data:,')), n: 3, tools: [{}], response_format: { type: 'json_object' } },
      ['vision messages', 'tools tools', 'json_object response_format', 'multiple_choices n'],
    ],
  ])('%s', (_name, fields, needs) => {
    const { features } = needsOf(request(fields));
    expect(features.map(({ feature, param }) => `${feature} ${param}`)).toEqual(needs);
  });

  test('at least an eighth of its characters as tokens, images not counted', () => {
    const messages = [
      { role: 'system', content: 'x'.repeat(60) },
      { role: 'user', content: [{ type: 'text', text: 'y'.repeat(59) }, image(`data:,${'z'.repeat(1000)}`)] },
      { role: 'assistant', content: null },
      { role: 'assistant' },
    ];
    expect(needsOf(request({ messages })).inputTokensAtLeast).toBe(14);
  });
});

describe('a model', () => {
  const facts = (over: Partial<ModelFacts>): ModelFacts => ({ ...permissiveFacts, ...over });

  test.each<[name: string, fields: object, over: Partial<ModelFacts>, missing: string | null]>([
    ['that nothing is known of can do everything', { n: 2, tools: [{}] }, {}, null],
    ['that lacks what is not asked for will do', {}, { vision: false, tools: false }, null],
    [
      'that lacks one thing is named it',
      { tools: [{}], n: 2 },
      { multiple_choices: false },
      'multiple_choices',
    ],
    [
      'that lacks two things is named the first',
      { tools: [{}], n: 2 },
      { tools: false, multiple_choices: false },
      'tools',
    ],
    ['that sees no URLs sees data', content(image('data:,')), { image_urls: false }, null],
    ['that sees no URLs does not fetch', content(image('https://a')), { image_urls: false }, 'image_urls'],
    [
      'whose context just holds the prompt will do',
      content({ type: 'text', text: 'x'.repeat(87) }),
      { context_tokens: 10 },
      null,
    ],
    [
      'whose context is too short lacks that',
      content({ type: 'text', text: 'x'.repeat(88) }),
      { context_tokens: 10 },
      'context',
    ],
  ])('%s', (_name, fields, over, missing) => {
    expect(missingFeature(needsOf(request(fields)), facts(over), [])?.feature ?? null).toBe(missing);
  });

  test('whose vendor has no words for it lacks it, whatever the tables say', () => {
    const needs = needsOf(request({ n: 2 }));
    expect(missingFeature(needs, permissiveFacts, ['multiple_choices'])?.param).toBe('n');
    expect(missingFeature(needs, permissiveFacts, ['blank_stop'])).toBeNull();
  });

  test('lacks things that have a name a person understands', () => {
    expect(featureText('forced_tool')).toBe('a forced tool_choice');
    expect(featureText('context')).toBe('a prompt of this length');
  });
});
