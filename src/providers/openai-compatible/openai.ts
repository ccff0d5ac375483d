import { compatibleProvider } from './compatible-provider.ts';

const nothing: readonly never[] = [];

/**
 * Takes every known field (OpenAI API reference: Chat Completions, read 2026-11-20); what reasoning models refuse
 * stands in the model facts.
 */
export const openai = compatibleProvider({
  name: 'openai',
  defaultBaseUrl: 'https://api.openai.com',
  verbatim: false,
  stopAsList: false,
  path: () => '/v1/chat/completions',
  modelsPath: '/v1/models',
  authHeaders: (secret) => ({ authorization: `Bearer ${secret}` }),
  lacks: () => nothing,
  lackedFields: () => nothing,
  errorKind: () => null,
});
