import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../core/errors.ts';
import { modelEntries, overrideTargets } from '../../core/model-list.ts';
import type { RoutingTables } from '../../core/tables.ts';

/**
 * `GET /v1/models` and `/v1/models/{id}`; ids hold slashes, encoded by the SDKs or not. Override targets stand
 * beside the list and not in it: clients offer every entry of it, and a target is no `model`.
 */
export function modelsRoutes(app: FastifyInstance, io: { readonly tables: () => RoutingTables }): void {
  app.get('/v1/models', async (request) => ({
    object: 'list',
    data: modelEntries,
    override_targets: overrideTargets(request.account.keys, io.tables()),
  }));
  app.get<{ Params: { '*': string } }>('/v1/models/*', async (request) => {
    const id = request.params['*'];
    const entry = modelEntries.find((model) => model.id === id);
    if (entry === undefined) {
      throw new NotFoundError('Unknown model: GET /v1/models lists what can be asked for.', {
        param: 'model',
        code: 'model_not_found',
      });
    }
    return entry;
  });
}
