import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../core/errors.ts';

const paths = ['/v1/users', '/v1/keys', '/v1/keys/*', '/v1/logs', '/v1/stats'];

const refuse = async (): Promise<never> => {
  throw new NotFoundError('This route needs a database, which this deployment runs without.', {
    code: 'not_in_profile',
  });
};

/** Routes that need a database, in a profile without one: a clear answer instead of an unknown path. */
export function notInProfileRoutes(app: FastifyInstance): void {
  for (const path of paths) {
    app.all(path, { onRequest: refuse }, async () => undefined);
  }
}
