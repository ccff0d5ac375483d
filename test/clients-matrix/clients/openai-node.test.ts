import { testClient } from '../matrix.ts';

testClient({
  name: 'openai-node',
  packages: ['openai'],
  language: 'node',
  driver: ['openai-node.mjs'],
  finish: { text: 'stop', tools: 'tool_calls' },
  showsBlock: true,
  errors: {
    401: 'AuthenticationError',
    422: 'UnprocessableEntityError',
    429: 'RateLimitError',
    503: 'InternalServerError',
    broken: 'APIError',
  },
});
