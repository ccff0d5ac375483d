import type { Provider } from '../provider.ts';
import { compatibleProvider } from './compatible-provider.ts';
import { refusesStreamOptions } from './stream-options.ts';

const nothing: readonly never[] = [];

/** Whatever the user runs: its base URL already ends in the version, and it gets the client's own fields. */
export const selfHosted: Provider = {
  ...compatibleProvider({
    name: 'self_hosted',
    defaultBaseUrl: null,
    verbatim: true,
    stopAsList: false,
    path: () => '/chat/completions',
    authHeaders: (secret) => ({ authorization: `Bearer ${secret}` }),
    lacks: () => nothing,
    lackedFields: () => nothing,
    errorKind: () => null,
  }),
  refusesStreamOptions,
};
