import { testClient } from '../matrix.ts';

testClient({
  name: 'langchain-js',
  packages: ['@langchain/openai', '@langchain/core', 'openai'],
  language: 'node',
  driver: ['langchain-js.mjs'],
  finish: { text: 'stop', tools: 'tool_calls' },
  showsBlock: false,
  errors: {
    401: 'AuthenticationError',
    422: 'UnprocessableEntityError',
    429: 'RateLimitError',
    503: 'InternalServerError',
    broken: 'APIError',
  },
});
