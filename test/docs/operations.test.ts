/**
 * What docs/operations.md says, by commands and over HTTP, executed on a real gateway, in its order. The one block of
 * docs/troubleshooting.md asks the same as its first.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { exitCodes } from '../../src/commands/exit-codes.ts';
import { blocksIn } from '../harness/clients/page-blocks.ts';
import { chat, chatOk, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { inProject } from '../harness/stage/project.ts';
import { readDocument } from './documents.ts';

const run = promisify(execFile);
const main = join(import.meta.dirname, '../../dist/main.js');
const adminToken = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_ADMIN_TOKEN: adminToken } });

const page = readDocument('docs/operations.md');
const commandsOf = (text: string): string[] =>
  [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => block.trim().split('\n'));
const lines = commandsOf(page.slice(page.indexOf('\n## Users\n')));

/**
 * What a line prints; rejects where it fails. `$GW`, `$KEY` and `$ID` are what the page calls them. Where the database
 * was late the line is run again, as its exit code asks for.
 */
async function shell(
  line: string,
  variables: Readonly<Record<string, string>>,
  cwd = tmpdir(),
): Promise<string> {
  const functions = `model-gateway() { "${process.execPath}" "${main}" "$@"; }`;
  const { url: GW, database } = gateway;
  const env = { PATH: process.env['PATH'] ?? '', DATABASE_URL: database.url, GW, ...variables };
  return eventually(async () => {
    const ran = await run('bash', ['-euc', `${functions}\n${line}`], { cwd, env }).catch(unlessAway);
    return ran?.stdout;
  });
}

function unlessAway(error: Error & { readonly code?: unknown }): undefined {
  if (error.code !== exitCodes.away) throw error;
}

/** The id of another key of this user. */
async function newKeyOf(email: string): Promise<string> {
  return (JSON.parse(await shell(`model-gateway users new-key ${email} --json`, {})) as { id: string }).id;
}

/** The block of a page that begins so. */
function blockOf(document: string, beginning: string): string {
  const found = blocksIn(document, 'sh').find((text) => text.startsWith(beginning));
  return found ?? expect.fail(`${document} has no block that begins with ${beginning}`);
}

describe('of a request that went otherwise than expected', () => {
  test.each(['docs/operations.md', 'docs/troubleshooting.md'])(
    '%s finds the row and its story',
    async (document) => {
      const user = await registerWithKeys(gateway.url);
      const { headers } = await chat(user.client);
      const [row] = await logRowsOnceThere(user.client, 1);
      const said = await shell(blockOf(document, 'curl -s "$GW/v1/logs?request_id'), {
        KEY: user.key,
        REQUEST_ID: String(headers['x-request-id']),
        ROW_ID: String(row?.id),
      });
      for (const text of [`{"data":[{"id":${row?.id},`, '"fate":"tried"']) expect(said).toContain(text);
    },
  );
});

describe('of costs', () => {
  const folder = useFolder();
  const typed = (beginning: string) =>
    shell(
      blockOf('docs/operations.md', `DATABASE_URL=postgres://… ${beginning}`).replace(
        'postgres://…',
        '"$DATABASE_URL"',
      ),
      {},
      folder.path,
    );

  test('what other prices would have made of them is summed', async () => {
    const { client } = await registerWithKeys(gateway.url, ['openai']);
    await chatOk(client);
    await logRowsOnceThere(client, 1);
    copyFileSync(inProject('charts/model-gateway/files/tables.yaml'), join(folder.path, 'new-tables.yaml'));
    expect(await typed('model-gateway reprice')).toMatch(/openai .*\d\.\d{6}/);
  });

  test('a file for those who pay is written', async () => {
    await typed('model-gateway export --format focus');
    expect(readFileSync(join(folder.path, 'costs.csv'), 'utf8')).toMatch(/^[^\n]*\bBilledCost\b/);
  });
});

test('a provider key is checked with its vendor', async () => {
  const user = await registerWithKeys(gateway.url, ['openai']);
  const [key] = (await user.client.get('/v1/keys')).json<{ id: string }[]>();
  const variables = { KEY: user.key, KEY_ID: key?.id ?? '' };
  const said = await shell(blockOf('docs/operations.md', 'curl -s -X POST "$GW/v1/keys/'), variables);
  expect(said).toContain('"verdict":"valid"');
});

test('every command of the page works', async () => {
  const email = 'ada@example.com';
  await registerUser(gateway.url, email).catch(() => undefined);
  for (const line of lines.filter((text) => text.startsWith('model-gateway'))) {
    // A second one, for what the page does after she was deleted.
    if (line.includes('set-residency')) await registerUser(gateway.url, email).catch(() => undefined);
    const variables = line.includes('$ID') ? { ID: await newKeyOf(email) } : {};
    expect(await shell(line, variables), line).not.toBe('');
  }
  const { key } = await registerUser(gateway.url);
  const asked = lines.filter((text) => text.startsWith('curl'));
  const [make = '', list = '', remove = '', ...more] = asked.filter((text) => !text.includes('$ADMIN'));
  const { id } = JSON.parse(await shell(make, { KEY: key })) as { id: string };
  expect(await shell(list, { KEY: key })).toContain(id);
  await shell(remove, { KEY: key, ID: id });
  expect(await shell(list, { KEY: key })).not.toContain(id);
  expect(more).toEqual([]);
  expect(lines.length).toBeGreaterThan(8);
});

test('every request of the page to the admin API works', async () => {
  const env = { ADMIN: gateway.adminUrl, TOKEN: adminToken };
  const asked = lines.filter((text) => text.includes('$ADMIN'));
  expect(asked).toHaveLength(8);
  let ID = '';
  for (const line of asked) {
    const answer = await shell(line, { ...env, ID });
    if (line.includes('/service-keys ')) ({ id: ID } = JSON.parse(answer) as { id: string });
    expect(answer, line).not.toContain('"error"');
    // Only what is gone has nothing to say.
    expect(answer === '', line).toBe(line.includes('-X DELETE'));
  }
});

test('the evidence that an auditor is handed holds what was asked, bound, refused and free', async () => {
  const [start, end] = [
    page.indexOf('\n## Evidence for auditors\n'),
    page.indexOf('\n## Does a provider key'),
  ];
  const india = { 'x-gateway-residency': 'india' };
  const user = await registerWithKeys(gateway.url);
  const foreign = await registerWithKeys(gateway.url, ['openai']);
  await chatOk(user.client);
  await chatOk(user.client, {}, india);
  expect((await chat(foreign.client, {}, india)).status).toBe(422);
  await shell(`model-gateway users set-residency ${user.id} india`, {});
  await expect.poll(async () => (await chatOk(user.client)).gateway.residency_actual).toBe('india');
  await logRowsOnceThere(foreign.client, 1);
  const folder = mkdtempSync(join(tmpdir(), 'gw-operations-'));
  try {
    const said: string[] = [];
    const commands = commandsOf(page.slice(start, end));
    for (const line of commands) said.push(await shell(line, { GW_STORAGE_REGION: 'ap-south-1' }, folder));
    expect(commands).toHaveLength(5);
    const [, , verdict = '', elsewhere = '', last = ''] = said;
    expect(verdict).toContain('rows kept in    ap-south-1');
    expect(JSON.parse(elsewhere)).toMatchObject({
      user_id: foreign.id,
      bound_by: 'request',
      served_in: 'none',
      error: 'residency_error',
    });
    expect(JSON.parse(last)).toMatchObject({
      listed: 3,
      bound_by: { request: 2, user: 1, deployment: 0 },
      served_in: { india: 2, none: 1, global: 0 },
      attempts_in: { india: 2, global: 0 },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
