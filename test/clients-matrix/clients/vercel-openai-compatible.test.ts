import { testClient } from '../matrix.ts';

testClient({
  name: 'ai, compatible',
  packages: ['ai', '@ai-sdk/openai-compatible'],
  language: 'node',
  driver: ['vercel-ai.mjs', 'openai-compatible'],
  finish: { text: 'stop', tools: 'tool-calls' },
  showsBlock: true,
  errors: {
    401: 'APICallError',
    422: 'APICallError',
    429: 'APICallError',
    503: 'APICallError',
    broken: 'StreamProviderError',
  },
});
