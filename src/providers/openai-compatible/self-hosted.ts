import { headerText } from '../../core/header-text.ts';
import type { Provider } from '../provider.ts';
import { compatibleProvider } from './compatible-provider.ts';
import { formWithoutRefused } from './stream-options.ts';

/**
 * Whatever the user runs: its base URL already ends in the version, and it gets the client's own fields (vLLM docs:
 * OpenAI-compatible server; Ollama docs/api/openai-compatibility.mdx; both read 2026-11-20).
 */
export const selfHosted: Provider = {
  ...compatibleProvider({
    name: 'self_hosted',
    defaultBaseUrl: null,
    verbatim: true,
    path: () => '/chat/completions',
    modelsPath: '/models',
    // Without a key there is nothing to prove: some servers refuse an empty one.
    authHeaders: (secret) => (secret.trim() === '' ? {} : { authorization: `Bearer ${headerText(secret)}` }),
  }),
  otherForm: formWithoutRefused,
};
