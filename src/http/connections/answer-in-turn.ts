import type { FastifyInstance } from 'fastify';
import { gatherEarly } from '../body/early-body.ts';
import type { Turns } from './turns.ts';

/**
 * A request that was sent behind another one on its connection is worked on when its answer's turn has come. One
 * read holds hundreds of them, and their answers would all be kept until the first is out. Few may wait.
 */
export function answerInTurn(app: FastifyInstance, turns: Turns): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (reply.raw.socket !== null) return done();
    if (turns.wait(request.raw, reply.raw, done)) gatherEarly(request);
  });
}
