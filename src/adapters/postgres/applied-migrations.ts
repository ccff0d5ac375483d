import type pg from 'pg';
import type { Migration } from './migration-files.ts';
import { sqlState } from './pool.ts';
import { sqlStates } from './sql-states.ts';

/** A row of `schema_migrations`. */
export interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  /** Null where a release applied it that kept none. */
  readonly checksum: string | null;
  /** As in `Migration`. */
  readonly oldestCode: number | null;
}

/** The schema is one that this release must not work with, or could not be brought up to date; the message says why. */
export class SchemaProblem extends Error {}

export interface SchemaState {
  /** Not applied yet, in their order. */
  readonly missing: readonly Migration[];
  /** Applied by a release before that kept no checksums. */
  readonly unsealed: readonly Migration[];
  /** Names of those that this release does not know: a newer one was here. */
  readonly newer: readonly string[];
}

/** The columns of checksums came later than the table: what is not there reads as null. */
const appliedSql = `
  SELECT version, name, to_jsonb(applied) ->> 'checksum' AS checksum,
    (to_jsonb(applied) ->> 'oldest_code')::integer AS "oldestCode"
  FROM schema_migrations AS applied ORDER BY version`;

/** In their order; none for an empty database. Rejects with the error of `pg`. */
export async function readApplied(db: Pick<pg.ClientBase, 'query'>): Promise<readonly AppliedMigration[]> {
  try {
    return (await db.query<AppliedMigration>(appliedSql)).rows;
  } catch (error) {
    if (sqlState(error) === sqlStates.undefinedTable) return [];
    throw error;
  }
}

/**
 * What is to be done. More migrations than this release knows are no obstacle, since a release and the next one work on
 * the same schema, unless one of them says that code as old as this cannot. Throws SchemaProblem where what was applied
 * is not what this release has.
 */
export function compareSchema(
  applied: readonly AppliedMigration[],
  known: readonly Migration[],
): SchemaState {
  const byVersion = new Map(applied.map((one) => [one.version, one]));
  const newest = applied.at(-1)?.version ?? 0;
  for (const { version, name, checksum } of known.slice(0, newest)) {
    const there = byVersion.get(version);
    if (there === undefined)
      throw new SchemaProblem(`migration ${name} was left out, and later ones applied`);
    if (there.name !== name)
      throw new SchemaProblem(`migration ${version} was applied as ${there.name}, here it is ${name}`);
    if (there.checksum !== null && there.checksum !== checksum)
      throw new SchemaProblem(`migration ${name} was changed after it was applied`);
  }
  const newer = applied.filter(({ version }) => version > known.length);
  for (const { name, oldestCode } of newer) {
    if (oldestCode !== null && oldestCode > known.length)
      throw new SchemaProblem(
        `migration ${name} was applied, after which a release works only if it knows ${oldestCode} migrations; ` +
          `this one knows ${known.length}`,
      );
  }
  return {
    missing: known.slice(newest),
    unsealed: known.filter(({ version }) => byVersion.get(version)?.checksum === null),
    newer: newer.map(({ name }) => name),
  };
}
