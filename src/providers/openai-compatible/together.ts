import { compatibleProvider } from './compatible-provider.ts';

/** Not among the parameters of together SDK 3.1.1, types/chat/completion_create_params.py. */
const lackedFields = ['user', 'parallel_tool_calls'] as const;
/** As little. */
const lackedFeatures = ['single_tool_call', 'other_modalities', 'functions', 'web_search'] as const;

/** Together answers 403 to input plus max_tokens over the context window (Together docs: Error codes). */
const tooLong = /\btokens?\b|context length|too long/i;

export const together = compatibleProvider({
  name: 'together',
  defaultBaseUrl: 'https://api.together.ai',
  verbatim: false,
  stopAsList: true,
  path: () => '/v1/chat/completions',
  modelsPath: '/v1/models',
  authHeaders: (secret) => ({ authorization: `Bearer ${secret}` }),
  lacks: () => lackedFeatures,
  lackedFields: () => lackedFields,
  errorKind: (status, error) => (status === 403 && tooLong.test(error.message) ? 'refused' : null),
});
