/** README.md, the quick start and the pages of clients, typed line by line against a real gateway. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
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

/** Addresses and keys as the pages of programs have them, in place of which the real ones are put. */
const filledIn = (text: string, user: User): string =>
  text.replaceAll('http://127.0.0.1:8080', gateway.url).replaceAll('gw_…', user.key);

test('Open WebUI, started as its page says, finds the modes and has an answer', async () => {
  const [block = ''] = blocksIn('docs/integrations/open-webui.md', 'sh');
  const program = `open-webui() {
    curl -s "$OPENAI_API_BASE_URL/models" -H "Authorization: Bearer $OPENAI_API_KEY"
    curl -sN "$OPENAI_API_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
      -H 'Content-Type: application/json' -d '{"model":"gw/balanced","stream":true,"messages":[{"role":"user","content":"Hi"}]}'
  }`;
  const user = await registerWithKeys(gateway.url);
  const said = await printedByShell(`${program}\n${filledIn(block, user)}`, {});
  for (const text of ['"id":"gw/balanced"', 'data: [DONE]']) expect(said).toContain(text);
  expect(said).not.toContain('"error":{');
});

interface ContinueModel {
  readonly model: string;
  readonly apiBase: string;
  readonly apiKey: string;
  readonly requestOptions?: { readonly headers: Readonly<Record<string, string>> };
}

test('every model that the page of Continue configures answers where it has to', async () => {
  const user = await registerWithKeys(gateway.url);
  const [block = ''] = blocksIn('docs/integrations/continue.md', 'yaml');
  const { models } = parse(filledIn(block, user)) as { readonly models: readonly ContinueModel[] };
  const answers = models.map(async ({ model, apiBase, apiKey, requestOptions }) => {
    const response = await fetch(`${apiBase}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...requestOptions?.headers,
      },
      body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    return response.text();
  });
  const [anywhere, inIndia] = await Promise.all(answers);
  expect(models).toHaveLength(2);
  for (const text of [anywhere, inIndia]) expect(text).toMatch(/data: \[DONE\]\s*$/);
  expect(inIndia).toContain('"residency_actual":"india"');
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
