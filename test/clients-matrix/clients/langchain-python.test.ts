import { testClient } from '../matrix.ts';

testClient({
  name: 'langchain-python',
  packages: ['langchain-openai', 'langchain-core', 'openai'],
  language: 'python',
  driver: ['langchain_python.py'],
  finish: { text: 'stop', tools: 'tool_calls' },
  showsBlock: false,
  errors: {
    401: 'OpenAIAuthenticationError',
    422: 'UnprocessableEntityError',
    429: 'OpenAIRateLimitError',
    503: 'OpenAIAPIError',
    broken: 'APIError',
  },
});
