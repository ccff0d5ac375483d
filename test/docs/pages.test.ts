/** README.md, the quick start and the pages of clients, typed line by line against a real gateway. */
import { expect, test } from 'vitest';
import { startDemoServer } from '../../src/demo/demo-server.ts';
import { blocksIn, printedByNode, printedByPython, printedByShell } from '../harness/clients/page-blocks.ts';
import { pythonWith } from '../harness/clients/python-venv.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { patient } from '../harness/measure/crowding.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { inProject } from '../harness/stage/project.ts';
import { skipWithout } from '../harness/stage/tools.ts';

const gateway = useGateway();
const demo = useServer(() => startDemoServer({ port: 0, host: '127.0.0.1', wordDelayMs: 0 }));
/** The test of the client has the same one. */
const python = ['openai==2.54.0'];
/** Several programs, one after the other; the first one may install a client. */
const pageLimitMs = 180_000;

/** As the demo user of `npm start` has it. */
async function withDemoModel(user: User): Promise<User> {
  await addKey(user, {
    provider: 'self_hosted',
    api_key: 'unused',
    base_url: demo.url,
    declared_region: 'demo',
    label: 'demo',
  });
  return user;
}

const variables = (user: User) => ({ GW: gateway.url, KEY: user.key });

/** Lines that were run before, or that hold what `npm start` has printed. */
const notTyped = /^(npm|export GW=).*\n/gm;

/** The commands of a page, with what was printed put in, and what the whole of them prints. */
async function typed(document: string, user: User): Promise<string> {
  const lines = blocksIn(document, 'sh')
    .join('echo\n')
    .replaceAll(notTyped, '')
    .replaceAll('sk-…', 'sk-test');
  return printedByShell(lines, variables(user));
}

test.each([
  ['README.md', []],
  ['docs/quick-start.md', ['data: [DONE]', '"next_cursor"', '"group_by":["provider"]', '"shown_once":true']],
])('a newcomer who types what %s says has what it promises', async (page, promised) => {
  const said = await typed(page, await withDemoModel(await registerUser(gateway.url)));
  expect(said).not.toContain('"error":{');
  for (const text of [...promised, 'You said: \\"Hello\\"', '"mode":"gw/cheap"'])
    expect(said).toContain(text);
  expect(gateway.vendors.openai.ledger).toHaveLength(1);
});

test('curl does what its page says', async () => {
  const said = await typed('docs/integrations/curl.md', await registerWithKeys(gateway.url));
  expect(said).not.toContain('"error":{');
  for (const text of ['data: [DONE]', '"mode":"override"', '"residency_actual":"india"', '"mode":"gw/cheap"'])
    expect(said).toContain(text);
  expect(said).toMatch(/"data":\[\{[^\]]*gw\/balanced/);
});

/** What each program of a page of a client has to print, in its order. */
const printedByClients = [
  /^Namaste, world\. openai \d\.\d{6}\n$/,
  /^Namaste, world\.$/,
  /^demo sarvam-test\n$/,
  /^422 unknown_mode model [\w-]{36}\n$/,
];

test(
  'the programs for Node print what their page says',
  async () => {
    const env = variables(await withDemoModel(await registerWithKeys(gateway.url)));
    const programs = blocksIn('docs/integrations/openai-node.md', 'ts');
    expect(programs).toHaveLength(printedByClients.length);
    for (const [index, program] of programs.entries())
      expect(await printedByNode(program, inProject('node_modules'), env)).toMatch(
        printedByClients[index] as RegExp,
      );
  },
  patient(pageLimitMs),
);

test(
  'the programs for Python print what their page says',
  async () => {
    const interpreter = await pythonWith(skipWithout('python3', 'the client runs on it'), python);
    const env = variables(await withDemoModel(await registerWithKeys(gateway.url)));
    const programs = blocksIn('docs/integrations/openai-python.md', 'python');
    expect(programs).toHaveLength(printedByClients.length);
    for (const [index, program] of programs.entries())
      expect(await printedByPython(program, interpreter, env)).toMatch(printedByClients[index] as RegExp);
  },
  patient(pageLimitMs),
);
