import type { UserFacts, UserPolicy } from '../../adapters/postgres/operators.ts';
import type { ProviderKeyRow } from '../../adapters/postgres/provider-keys.ts';
import type { Spend, SpendPeriod } from '../../adapters/postgres/read-spend.ts';
import { InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import { operatorOf } from '../admin-auth.ts';
import type { AdminRoutes } from '../admin-routes.ts';
import type { Asker, AuditEvent } from '../http-telemetry.ts';
import type { HandlersOf } from '../mount.ts';
import { serviceKeyFacts, spendReport, storedKeyFacts, userRecord } from '../operator-records.ts';
import { defaultPage } from '../query-schemas.ts';
import type { ServiceKeysDeps } from './service-keys.ts';
import { makeServiceKey } from './service-keys.ts';
import type { UsersDeps } from './users.ts';
import { register } from './users.ts';

export interface OperatorsDeps
  extends Omit<UsersDeps, 'mayRegister'>,
    Omit<ServiceKeysDeps, 'deleteServiceKey'> {
  readonly listUsers: (afterId: string | null, limit: number) => Promise<readonly UserFacts[]>;
  readonly findUser: (idOrEmail: string) => Promise<UserFacts | null>;
  /** Null: there is none. */
  readonly setUserPolicy: (userId: string, policy: UserPolicy) => Promise<UserFacts | null>;
  /** False: there is none. */
  readonly deleteUser: (userId: string) => Promise<boolean>;
  readonly listProviderKeys: (userId: string) => Promise<readonly ProviderKeyRow[]>;
  readonly readSpend: (period: SpendPeriod) => Promise<Spend>;
}

const noUser = (): NotFoundError => new NotFoundError('No such user.');

/** What the audit says of a decision: a line for each thing that was decided. */
function decisions(userId: string, { disabled, residency, limits }: UserPolicy): AuditEvent[] {
  const events: AuditEvent[] = [];
  if (disabled !== undefined) events.push({ audit: disabled ? 'user_disabled' : 'user_enabled', userId });
  if (residency !== undefined) {
    events.push({ audit: residency === null ? 'user_residency_freed' : 'user_residency_bound', userId });
  }
  if (limits !== undefined) events.push({ audit: 'user_limits_set', userId });
  return events;
}

/** `/admin`: what operators do by commands as well (docs/decisions/0018), for who holds the admin token. */
export function operatorsHandlers(deps: OperatorsDeps): HandlersOf<AdminRoutes> {
  const found = async (idOrEmail: string): Promise<UserFacts> => {
    const user = await deps.findUser(idOrEmail);
    if (user === null) throw noUser();
    return user;
  };
  const audit = (events: readonly AuditEvent[], asker: Asker): void => {
    for (const event of events) deps.httpTelemetry.audited(event, asker);
  };
  return {
    addUser: ({ body, request }) => register(deps, body, operatorOf(request)),
    async listUsers({ query: { limit = defaultPage, cursor = null } }) {
      const users = await deps.listUsers(cursor, limit);
      const next_cursor = users.length === limit ? (users.at(-1)?.id ?? null) : null;
      return { data: users.map(userRecord), next_cursor };
    },
    async showUser({ param }) {
      const user = await found(param);
      const serviceKeys = await deps.listServiceKeys(user.id);
      const providerKeys = await deps.listProviderKeys(user.id);
      return {
        user: userRecord(user),
        service_keys: serviceKeys.map(serviceKeyFacts),
        provider_keys: providerKeys.map(storedKeyFacts),
      };
    },
    async changeUser({ param, body, request }) {
      if (Object.keys(body).length === 0) {
        throw new InvalidRequestError('The body must say what is to change.', null, 'nothing_to_change');
      }
      const { id } = await found(param);
      const user = await deps.setUserPolicy(id, body);
      if (user === null) throw noUser();
      audit(decisions(id, body), operatorOf(request));
      return userRecord(user);
    },
    async deleteUser({ param, request }) {
      const { id } = await found(param);
      if (!(await deps.deleteUser(id))) throw noUser();
      audit([{ audit: 'user_deleted', userId: id }], operatorOf(request));
    },
    async addUserKey({ param, body, request }) {
      const { id } = await found(param);
      const { row, apiKey } = await makeServiceKey(deps, id, body, operatorOf(request));
      return { user_id: id, ...serviceKeyFacts(row), api_key: apiKey, shown_once: true };
    },
    async readSpend({ query: { from, to = BigInt(deps.clock.wallMs()) * 1000n } }) {
      if (to <= from) throw new InvalidRequestError('to: must lie after from.', 'to');
      return spendReport(await deps.readSpend({ fromMicros: from, toMicros: to }));
    },
  };
}
