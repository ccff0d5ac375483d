/** `npm run observe` as a newcomer runs it, from its start to Ctrl-C. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/free-port.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { readDashboards } from '../harness/observe/dashboards.ts';

const root = join(import.meta.dirname, '../..');
/** Packages are there, so it is a build, a Postgres, a gateway and a Prometheus. */
const startLimitMs = 90_000;
const stopLimitMs = 30_000;

let observe: ChildProcess;
let output = '';
const folder = mkdtempSync(join(tmpdir(), 'model-gateway-observe-'));

beforeAll(async () => {
  chmodSync(folder, 0o711); // the user that Postgres runs as must pass through
  const [port, adminPort] = [await freePort(), await freePort()];
  observe = spawn(process.execPath, [join(root, 'scripts/stage.mjs'), 'observe'], {
    env: {
      ...process.env,
      TMPDIR: folder,
      // npm's own, which would stay in the folder for the next npm.
      NODE_DISABLE_COMPILE_CACHE: '1',
      PORT: String(port),
      GW_ADMIN_PORT: String(adminPort),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [observe.stdout, observe.stderr])
    stream?.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
  const isReady = () =>
    Promise.resolve(output.includes('In Grafana') || observe.exitCode !== null || undefined);
  await eventually(isReady, startLimitMs);
  expect(observe.exitCode, output).toBeNull();
}, startLimitMs);

afterAll(() => {
  observe?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const linkTo = (path: string) => new RegExp(`http://\\S+/${path}$`, 'm').exec(output)?.[0] ?? `no ${path}`;

/** As a browser does: where it is sent to, and the whole of it. */
async function load(address: string | URL): Promise<{ status: number; url: string; text: string }> {
  const answer = await fetch(address);
  return { status: answer.status, url: answer.url, text: await answer.text() };
}

describe.each(readDashboards())('$title', ({ name, title, panels }) => {
  test('has a page with a live picture of all its panels', async () => {
    const page = await httpClient(linkTo(name)).get('');
    expect(page.text).toContain(`src="/${name}.svg"`);
    const picture = await eventually(async () => {
      const { text } = await httpClient(`${linkTo(name)}.svg`).get('');
      return text.includes('fill="none"') ? text : undefined;
    }, 20_000);
    for (const heading of [title, ...panels.map((panel) => panel.title)])
      expect(picture).toContain(`>${heading}</text>`);
  });

  test("has a link to its queries on Prometheus's own page, which has all it needs", async () => {
    const page = await load(linkTo(`${name}/prometheus`));
    expect(page.status).toBe(200);
    expect(new URL(page.url).searchParams.get('g0.expr')).toMatch(/gw_|http_|gen_ai_/);
    const parts = [...page.text.matchAll(/(?:src|href)="([^"]*static[^"]*)"/g)];
    for (const [, part = ''] of parts) expect((await load(new URL(part, page.url))).status, part).toBe(200);
  });
});

test('a path that is no dashboard is not found', async () => {
  expect((await httpClient(new URL(linkTo('cost')).origin).get('/favicon.ico')).status).toBe(404);
});

test('Ctrl-C ends it, and nothing is left', { timeout: stopLimitMs }, async () => {
  const ended = once(observe, 'exit');
  observe.kill('SIGINT');
  expect(await ended, output).toEqual([0, null]);
  expect(readdirSync(folder)).toEqual([]);
  for (const link of [linkTo('cost'), /http:\S+(?=\/alerts)/.exec(output)?.[0] ?? ''])
    await expect(httpClient(link).get('')).rejects.toThrow('ECONNREFUSED');
});
