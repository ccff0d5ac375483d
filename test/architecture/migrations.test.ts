import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** What CONTRIBUTING.md asks of a migration, since gateways of the version before serve while it runs. */

const folder = new URL('../../src/adapters/postgres/migrations/', import.meta.url);
/** They are older than the rules. */
const applied = 9;

const takesAway = 'drops or renames what is there';

/** What breaks or holds up those who serve, by what it is called. */
const forbidden: readonly (readonly [what: string, pattern: RegExp])[] = [
  [takesAway, /\b(DROP\s+(TABLE|COLUMN|TYPE|FUNCTION|VIEW)|RENAME)\b/i],
  ['narrows a column', /\bALTER\s+COLUMN\s+\w+\s+(SET\s+NOT\s+NULL|(SET\s+DATA\s+)?TYPE)\b/i],
  ['keeps writers of request_logs out', /\bCREATE\s+(UNIQUE\s+)?INDEX\s+\w+\s+ON\s+request_logs\b/i],
  ['cannot run in a transaction', /\bCONCURRENTLY\b/i],
  [
    'breaks the insert of the release before',
    /\bADD\s+COLUMN\b(?!(?:[^,;()]|\([^()]*\))*\bDEFAULT\b)(?:[^,;()]|\([^()]*\))*\bNOT\s+NULL\b/i,
  ],
  ['rewrites rows', /^\s*(UPDATE|DELETE)\b/im],
  ['reads all rows under its lock', /\bADD\s+CONSTRAINT\b(?![^;]*\bNOT\s+VALID\b)/i],
];

/** With it a file says that code of before its number no longer works, which that code heeds. */
const oldestCode = /^-- oldest-code: \d{4}$/m;

/** Why this file may not run beside gateways that serve; a comment is not SQL. */
function problemsOf(text: string): string[] {
  const sql = text.replace(/--.*$/gm, '');
  const found = forbidden.filter(([, pattern]) => pattern.test(sql)).map(([what]) => what);
  return oldestCode.test(text) ? found.filter((what) => what !== takesAway) : found;
}

const files = readdirSync(folder).filter(
  (name) => name.endsWith('.sql') && Number(name.slice(0, 4)) > applied,
);

test.each(files)('%s can run while gateways serve', (name) => {
  expect(problemsOf(readFileSync(new URL(name, folder), 'utf8'))).toEqual([]);
});

test.each([
  ['ALTER TABLE a ADD COLUMN b text;', []],
  ['ALTER TABLE a ADD COLUMN b numeric(38, 0) NOT NULL;', ['breaks the insert of the release before']],
  [
    'ALTER TABLE a ADD COLUMN b text NOT NULL, ADD COLUMN c bigint NOT NULL DEFAULT 0;',
    ['breaks the insert of the release before'],
  ],
  [
    'ALTER TABLE a ADD COLUMN b numeric(38, 0) NOT NULL DEFAULT 0, ADD COLUMN c bigint DEFAULT 0 NOT NULL;',
    [],
  ],
  ['ALTER TABLE a DROP COLUMN b;', ['drops or renames what is there']],
  ['-- oldest-code: 0012\nALTER TABLE a DROP COLUMN b;', []],
  ['UPDATE a SET b = 1;', ['rewrites rows']],
  ['DELETE FROM a;', ['rewrites rows']],
  ['INSERT INTO a VALUES (1) ON CONFLICT DO UPDATE SET b = 1;', []],
  ['ALTER TABLE a RENAME b TO c;', ['drops or renames what is there']],
  ['ALTER TABLE a ALTER COLUMN b SET NOT NULL;', ['narrows a column']],
  ['CREATE INDEX i ON request_logs (id);', ['keeps writers of request_logs out']],
  ['CREATE INDEX i ON ONLY request_logs (id);', []],
  ['CREATE INDEX CONCURRENTLY i ON request_logs (id);', ['cannot run in a transaction']],
  ['ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0);', ['reads all rows under its lock']],
  ['ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0) NOT VALID;', []],
])('%s: %j', (sql, problems) => {
  expect(problemsOf(`-- RENAME in words\n${sql}`)).toEqual(problems);
});
