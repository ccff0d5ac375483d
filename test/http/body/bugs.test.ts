import { fastify } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { LaterTurns } from '../../../src/chat/later-turn.ts';
import { ApiError } from '../../../src/core/errors.ts';
import { acceptOnlyJson } from '../../../src/http/body/body-parser.ts';
import { MeasuredMessage } from '../../../src/http/body/measured-message.ts';

const bug = new Error('a bug');

/** Takes what comes, and fails where it is asked what the whole body costs. */
const budget = {
  open: () => ({
    grow: (_bytes: number, cost?: number) => {
      if (cost !== undefined) throw bug;
      return true;
    },
    release: () => undefined,
  }),
};

test.each([
  ['read at once', 10],
  ['read in turns of its own', 2 * 1024 * 1024],
])('a bug of ours in a body that is %s is the error of its request', async (_how, length) => {
  const app = fastify({ bodyLimit: 4 * 1024 * 1024, http: { IncomingMessage: MeasuredMessage } });
  onTestFinished(() => app.close());
  app.decorateRequest('earlyBody', null);
  acceptOnlyJson(app, budget as never, new LaterTurns());
  const errors: unknown[] = [];
  app.setErrorHandler((error, _request, reply) => {
    errors.push(error);
    return reply.code(500).send('told');
  });
  app.post('/', () => 'fine');
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const body = JSON.stringify('x'.repeat(length));
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect([answer.status, await answer.text()]).toEqual([500, 'told']);
  expect(errors).toEqual([expect.any(ApiError)]);
  expect(errors[0]).toHaveProperty('cause', bug);
});
