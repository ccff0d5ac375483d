import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../core/errors.ts';
import { listModels } from '../../core/model-list.ts';
import type { RoutingTables } from '../../core/tables.ts';

/** `GET /v1/models` and `/v1/models/{id}`; ids hold slashes, encoded by the SDKs or not. */
export function modelsRoutes(app: FastifyInstance, io: { readonly tables: () => RoutingTables }): void {
  app.get('/v1/models', async (request) => ({
    object: 'list',
    data: listModels(request.account.keys, io.tables()),
  }));
  app.get<{ Params: { '*': string } }>('/v1/models/*', async (request) => {
    const id = request.params['*'];
    const entry = listModels(request.account.keys, io.tables()).find((model) => model.id === id);
    if (entry === undefined) {
      throw new NotFoundError('Unknown model, or none of your keys reaches it.', {
        param: 'model',
        code: 'model_not_found',
      });
    }
    return entry;
  });
}
