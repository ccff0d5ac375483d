import { testClient } from '../matrix.ts';

testClient({
  name: 'openai-python',
  packages: ['openai'],
  language: 'python',
  driver: ['openai_python.py'],
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
