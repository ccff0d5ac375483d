import { compatibleProvider } from './compatible-provider.ts';

/** Not among the parameters of together SDK 3.1.1, types/chat/completion_create_params.py. */
const lackedFields = ['user', 'parallel_tool_calls'] as const;
/** As little. */
const lackedFeatures = [
  'single_tool_call',
  'other_modalities',
  'functions',
  'custom_tools',
  'web_search',
] as const;

/**
 * Together answers 403 to input plus max_tokens over the context window (Together docs: Error codes), in the words of
 * the server that runs the model (BerriAI/litellm issue 4934; vLLM, SGLang). Told by what the sentence begins with:
 * behind that may stand the name of a model, which the client has chosen.
 */
const tooLong =
  /^(?:input validation error: )?(?:(?:the |your )?[`'"]?(?:inputs?|prompt|max_(?:new_|completion_)?tokens)\b|requested token count|this model's maximum context length)/i;

export const together = compatibleProvider({
  name: 'together',
  defaultBaseUrl: 'https://api.together.ai',
  stopAsList: true,
  lacks: () => lackedFeatures,
  lackedFields: () => lackedFields,
  errorKind: (status, error) => (status === 403 && tooLong.test(error.message) ? 'refused' : null),
});
