import { compatibleProvider } from './compatible-provider.ts';

/** Listed by neither version of the API (sarvamai SDK 0.1.39 chat/client.py). */
const lackedByAll = ['user'] as const;
/** Came with /v2 (Sarvam changelog, 2026-10-22). */
const lackedByV1 = ['user', 'parallel_tool_calls', 'stream_options'] as const;
/** In neither version's list of parameters (sarvamai SDK 0.1.39 chat/client.py). */
const lackedFeatures = ['logprobs', 'other_modalities', 'functions', 'custom_tools', 'web_search'] as const;
const lackedFeaturesOfV1 = [...lackedFeatures, 'single_tool_call'] as const;

export const sarvam = compatibleProvider({
  name: 'sarvam',
  defaultBaseUrl: 'https://api.sarvam.ai',
  // 400 "Input should be a valid string" (sarvamai/sarvam-ai-cookbook issue 107); SDK 0.1.39 has lists of users only.
  plainText: true,
  path: (facts) => `/${facts.api_version}/chat/completions`,
  // Sarvam docs: API reference, List Models; read 2026-11-22.
  modelsPath: '/v2/models',
  // The first is what Sarvam's own SDK sends, the second what its guide to OpenAI clients shows.
  authHeaders: (secret) => ({ 'api-subscription-key': secret, authorization: `Bearer ${secret}` }),
  lacks: (facts) => (facts.api_version === 'v1' ? lackedFeaturesOfV1 : lackedFeatures),
  lackedFields: (facts) => (facts.api_version === 'v1' ? lackedByV1 : lackedByAll),
});
