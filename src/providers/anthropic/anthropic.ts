import type { Provider } from '../provider.ts';
import { readAnthropicError } from './error.ts';
import { translateAnthropicRequest, versionHeaders } from './request.ts';
import { translateAnthropicAnswer } from './response.ts';
import { AnthropicStream } from './stream.ts';

/**
 * Features without any counterpart in the Messages API, whatever the model: several choices, JSON of any shape,
 * formats and choices we do not know, stop sequences of white space (refused),
 * parts that are neither text, image nor PDF as the OpenAI format spells them, tools of free text, probabilities,
 * answers that are not text.
 */
const lackedFeatures = [
  'json_object',
  'other_response_format',
  'multiple_choices',
  'other_tool_choice',
  'blank_stop',
  'audio_input',
  'file_input',
  'video_input',
  'custom_tools',
  'logprobs',
  'other_modalities',
  'functions',
  'web_search',
] as const;

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
