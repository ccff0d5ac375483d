import type { Clock } from '../../chat/ports.ts';
import { NotFoundError } from '../../core/errors.ts';
import { parseMode } from '../../core/tables/mode.ts';
import { modelEntries, overrideTargets } from '../../core/tables/model-list.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import type { KeyFinder } from '../access/keys-of.ts';
import { keysOf } from '../access/keys-of.ts';
import type { HttpTelemetry } from '../http-telemetry.ts';
import { activeLegacyName, markLegacy } from '../legacy.ts';
import type { Handlers, RouteAnswer } from '../mount.ts';

export interface ModelsDeps {
  readonly accounts: KeyFinder;
  readonly tables: () => RoutingTables;
  readonly clock: Clock;
  readonly httpTelemetry: HttpTelemetry;
}

/**
 * `GET /v1/models` and `/v1/models/{id}`; ids hold slashes, encoded by the SDKs or not. Override targets stand
 * beside the list and not in it: clients offer every entry of it, and a target is no `model`. A mode under its name
 * from before the rename is found as long as chat takes it.
 */
export function modelsHandlers(deps: ModelsDeps): Handlers<'listModels' | 'findModel'> {
  return {
    listModels: async ({ request }): Promise<RouteAnswer<'listModels'>> => ({
      object: 'list',
      data: modelEntries,
      override_targets: overrideTargets(await keysOf(request, deps.accounts), deps.tables()),
    }),
    findModel({ params, reply }) {
      const tables = deps.tables();
      const parsed = parseMode(params.id, activeLegacyName(tables, deps.clock));
      const entry = modelEntries.find((model) => model.id === parsed?.mode);
      if (entry === undefined) {
        throw new NotFoundError('Unknown model: GET /v1/models lists what can be asked for.', {
          param: 'model',
          code: 'model_not_found',
        });
      }
      if (parsed?.legacy === true) {
        markLegacy(reply, tables);
        deps.httpTelemetry.legacyUsed('mode');
      }
      return entry;
    },
  };
}
