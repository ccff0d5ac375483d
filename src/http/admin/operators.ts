import type { UserFacts, UserPolicy } from '../../adapters/postgres/operators.ts';
import type { ProviderKeyRow } from '../../adapters/postgres/provider-keys.ts';
import type { Spend, SpendPeriod } from '../../adapters/postgres/read-spend.ts';
import { InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import type { Asker, AuditEvent } from '../audit.ts';
import type { HandlersOf } from '../mount.ts';
import type { ServiceKeysDeps, UserKeyStore } from '../routes/service-keys.ts';
import { makeServiceKey, noServiceKey } from '../routes/service-keys.ts';
import type { UserStore } from '../routes/users.ts';
import { register } from '../routes/users.ts';
import { defaultPage } from '../schemas/query-schemas.ts';
import { operatorOf } from './admin-auth.ts';
import type { AdminRoutes } from './admin-routes.ts';
import { newUserKey, shownUser, spendReport, userRecord } from './operator-records.ts';

/** What operators do with the database. */
export interface OperatorStore extends UserStore, UserKeyStore {
  readonly listUsers: (afterId: string | null, limit: number) => Promise<readonly UserFacts[]>;
  readonly findUser: (idOrEmail: string) => Promise<UserFacts | null>;
  /** Null: there is none. */
  readonly setUserPolicy: (userId: string, policy: UserPolicy) => Promise<UserFacts | null>;
  /** False: there is none. */
  readonly deleteUser: (userId: string) => Promise<boolean>;
  /** False: the user has no such key. */
  readonly revokeServiceKey: (userId: string, keyId: string) => Promise<boolean>;
  readonly listProviderKeys: (userId: string) => Promise<readonly ProviderKeyRow[]>;
  readonly readSpend: (period: SpendPeriod) => Promise<Spend>;
}

const noSuchUser = (): NotFoundError => new NotFoundError('No such user.');

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
export function operatorsHandlers(store: OperatorStore, deps: ServiceKeysDeps): HandlersOf<AdminRoutes> {
  const found = async (idOrEmail: string): Promise<UserFacts> => {
    const user = await store.findUser(idOrEmail);
    if (user === null) throw noSuchUser();
    return user;
  };
  const audit = (events: readonly AuditEvent[], asker: Asker): void => {
    for (const event of events) deps.httpTelemetry.audited(event, asker);
  };
  return {
    addUser: ({ body, request }) => register(store, deps.httpTelemetry, body, operatorOf(request)),
    async listUsers({ query: { limit = defaultPage, cursor = null } }) {
      const users = await store.listUsers(cursor, limit);
      const next_cursor = users.length === limit ? (users.at(-1)?.id ?? null) : null;
      return { data: users.map(userRecord), next_cursor };
    },
    async showUser({ params }) {
      const user = await found(params.user);
      const serviceKeys = await store.listServiceKeys(user.id);
      const providerKeys = await store.listProviderKeys(user.id);
      return shownUser(user, serviceKeys, providerKeys);
    },
    async changeUser({ params, body, request }) {
      if (Object.keys(body).length === 0) {
        throw new InvalidRequestError('The body must say what is to change.', null, 'nothing_to_change');
      }
      const { id } = await found(params.user);
      const user = await store.setUserPolicy(id, body);
      if (user === null) throw noSuchUser();
      audit(decisions(id, body), operatorOf(request));
      return userRecord(user);
    },
    async deleteUser({ params, request }) {
      const { id } = await found(params.user);
      if (!(await store.deleteUser(id))) throw noSuchUser();
      audit([{ audit: 'user_deleted', userId: id }], operatorOf(request));
    },
    async addUserKey({ params, body, request }) {
      const { id } = await found(params.user);
      const { row, apiKey } = await makeServiceKey(store, deps, id, null, body, operatorOf(request));
      return newUserKey(id, row, apiKey);
    },
    async revokeUserKey({ params, request }) {
      const { id } = await found(params.user);
      const keyId = params.key_id;
      if (!(await store.revokeServiceKey(id, keyId))) throw noServiceKey();
      audit([{ audit: 'service_key_deleted', userId: id, keyId }], operatorOf(request));
    },
    async readSpend({ query: { from, to = BigInt(deps.clock.wallMs()) * 1000n } }) {
      if (to <= from) throw new InvalidRequestError('to: must lie after from.', 'to');
      return spendReport(await store.readSpend({ fromMicros: from, toMicros: to }));
    },
  };
}
