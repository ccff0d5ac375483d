import type { UserFacts } from '../../adapters/postgres/operators.ts';
import type { ProviderKeyRow } from '../../adapters/postgres/provider-keys.ts';
import type { Spend, UserSpend } from '../../adapters/postgres/read-spend.ts';
import type { ServiceKeyRow } from '../../adapters/postgres/service-keys.ts';
import type { RegisteredUser } from '../../adapters/postgres/users.ts';
import { formatMicroUsd } from '../../core/answer/cost.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { RegisteredUserRecord } from '../schemas/answer-schemas.ts';
import type {
  NewUserKey,
  ServiceKeyFacts,
  ShownUser,
  SpendRecord,
  SpendReport,
  StoredKeyFacts,
  UserRecord,
} from './operator-schemas.ts';

/** A user in the words of the API, which commands print too. */
export function userRecord(user: UserFacts): UserRecord {
  return {
    user_id: user.id,
    email: user.email,
    created_at: formatTimestampMicros(user.createdAtMicros),
    disabled_at: instantOf(user.disabledAtMicros),
    residency: user.residency,
    limits: user.limits,
    service_keys: user.serviceKeys,
    provider_keys: user.providerKeys,
  };
}

const instantOf = (micros: bigint | number | null): string | null =>
  micros === null ? null : formatTimestampMicros(micros);

/** Neither the key nor its hash. */
export function serviceKeyFacts(row: ServiceKeyRow): ServiceKeyFacts {
  return {
    id: row.id,
    label: row.label,
    created_at: formatTimestampMicros(row.createdAtMicros),
    expires_at: instantOf(row.expiresAtMicros),
    last_used_at: instantOf(row.lastUsedAtMicros),
  };
}

/** A stored provider key without what depends on the tables in use. */
function storedKeyFacts({ id, provider, label, baseUrl, declaredRegion }: ProviderKeyRow): StoredKeyFacts {
  return { id, provider, label, base_url: baseUrl, declared_region: declaredRegion };
}

/** A user who has just been registered, with the one service key in the clear. */
export function registeredUser({ userId, email, apiKey }: RegisteredUser): RegisteredUserRecord {
  return { user_id: userId, email, api_key: apiKey, shown_once: true };
}

/** A user with its keys, none of them in the clear. */
export function shownUser(
  user: UserFacts,
  serviceKeys: readonly ServiceKeyRow[],
  providerKeys: readonly ProviderKeyRow[],
): ShownUser {
  return {
    user: userRecord(user),
    service_keys: serviceKeys.map(serviceKeyFacts),
    provider_keys: providerKeys.map(storedKeyFacts),
  };
}

/** A service key that was made for a user, in the clear. */
export function newUserKey(userId: string, row: ServiceKeyRow, apiKey: string): NewUserKey {
  return { user_id: userId, ...serviceKeyFacts(row), api_key: apiKey, shown_once: true };
}

/** What a user spent, to the micro-dollar. */
function spendRecord(spend: UserSpend): SpendRecord {
  return {
    user_id: spend.userId,
    email: spend.email,
    requests: Number(spend.requests),
    errors: Number(spend.requests - spend.successes),
    input_tokens: Number(spend.inputTokens),
    output_tokens: Number(spend.outputTokens),
    cost_usd: formatMicroUsd(spend.costMicroUsd),
  };
}

/** What all users spent in a period. */
export function spendReport({ fromMicros, toMicros, users, isCut }: Spend): SpendReport {
  return {
    from: formatTimestampMicros(fromMicros),
    to: formatTimestampMicros(toMicros),
    users: users.map(spendRecord),
    more: isCut,
  };
}
