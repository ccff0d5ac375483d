import { describe, expect, test } from 'vitest';
import { missingFeature } from '../../src/core/capability.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { isUserServer, providerNames } from '../../src/core/provider-name.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { chatRequestWithDeveloperSchema } from '../../src/core/request/chat-request.ts';
import { needsOf } from '../../src/core/request/request-needs.ts';
import { providers } from '../../src/providers/registry.ts';
import type { ContextOptions } from './fixtures.ts';
import { contextFor, loadCases } from './fixtures.ts';

interface RequestCase extends ContextOptions {
  readonly request: Record<string, unknown>;
  /** The whole body the vendor gets; `model` is filled in. */
  readonly body?: Record<string, unknown>;
  /** Instead of a body: the feature for want of which the vendor is not asked. */
  readonly unable?: string;
  /** Where it goes; unsaid, as the first case of the provider. */
  readonly path?: string;
  /** Of the first case: the headers that hold the key `k`. */
  readonly auth?: Readonly<Record<string, string>>;
  readonly dropped?: readonly string[];
  /** Fields that only an operator's passthrough list lets in. */
  readonly extra?: Record<string, unknown>;
}

const cases = loadCases<RequestCase>('requests');

/** What holds for all requests to a vendor is said by the first of its cases. */
function firstCase(provider: ProviderName): RequestCase {
  const first = cases.find((one) => one.provider === provider);
  if (first === undefined) throw new Error(`test/fixtures/${provider}/requests.yaml is missing`);
  return first;
}

describe('request translation', () => {
  test.each(cases)('$provider: $name', (given) => {
    const parsed = chatRequestWithDeveloperSchema.parse({ model: 'gw/balanced', ...given.request });
    const request = Object.freeze({ ...parsed, ...given.extra }) as ChatRequest;
    const before = structuredClone(request);
    const context = contextFor(given.provider, given);

    const { lacks, translateRequest } = providers[given.provider];
    const missing = missingFeature(needsOf(request), context.facts, lacks(context.facts));
    expect(missing?.feature).toBe(given.unable);
    if (missing !== null) return;
    const upstream = translateRequest(request, context);

    expect(JSON.parse(upstream.body)).toEqual({ model: context.model, ...given.body });
    expect([...upstream.dropped].sort()).toEqual([...(given.dropped ?? [])].sort());
    expect(upstream.path).toBe(given.path ?? firstCase(given.provider).path);
    expect(request).toEqual(before);
  });

  test('sends the messages of a plain request by reference, without a copy', async () => {
    const { cleanMessages } = await import('../../src/providers/openai-compatible/messages.ts');
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    expect(cleanMessages(messages, { knowsDeveloper: false, plainText: true })).toBe(messages);
  });
});

describe('addresses', () => {
  test.each(providerNames)('%s has one of its own just where no key carries it', (provider) => {
    expect(providers[provider].defaultBaseUrl === null).toBe(isUserServer(provider));
  });
});

describe('credentials', () => {
  test.each(providerNames)('%s gets its key in its own header and nowhere else', (provider) => {
    expect(providers[provider].authHeaders('k')).toEqual(firstCase(provider).auth);
    expect(providers[provider].name).toBe(provider);
  });

  test('Anthropic requests name the version of the API', () => {
    const upstream = providers.anthropic.translateRequest(
      { model: 'gw/cheap', messages: [{ role: 'user', content: 'Hi' }] },
      contextFor('anthropic', {}),
    );
    expect(upstream.headers).toEqual({ 'anthropic-version': '2023-06-01' });
  });
});
