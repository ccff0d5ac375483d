import type { Provider } from '../provider.ts';
import { readAnthropicError } from './error.ts';
import { lackedFeatures, translateAnthropicRequest, versionHeaders } from './request.ts';
import { translateAnthropicAnswer } from './response.ts';
import { AnthropicStream } from './stream.ts';

/** The Messages API; its OpenAI-compatible endpoint is meant for trials only, as its own page says. */
export const anthropic: Provider = {
  name: 'anthropic',
  defaultBaseUrl: 'https://api.anthropic.com',
  authHeaders: (secret) => ({ 'x-api-key': secret }),
  // Claude docs: List Models; read 2026-11-22.
  modelsRequest: { path: '/v1/models?limit=1', headers: versionHeaders },
  lacks: () => lackedFeatures,
  translateRequest: translateAnthropicRequest,
  translateAnswer: translateAnthropicAnswer,
  streamTranslator: (context) => new AnthropicStream(context),
  readError: readAnthropicError,
};
