/** The launcher on a Node that is too old: what it fetches, and what a fetch that came to nothing leaves behind. */
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Child } from './child.ts';
import { runNode } from './child.ts';

const scripts = join(import.meta.dirname, '../../scripts');

/** In place of npm: what a fetch leaves in the folder it is started in. */
const npm = `
  const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
  const ends = {
    well: () => write('exec "' + process.env.REAL_NODE + '" "$@"'),
    useless: () => write('exit 1'),
    offline: () => fail('npm error code ENOTFOUND\\nnpm error network request failed'),
    half: () => (write('half'), setInterval(() => undefined, 1000)),
  };
  function write(line) {
    const [name] = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).dependencies);
    mkdirSync('node_modules/' + name + '/bin', { recursive: true });
    writeFileSync('node_modules/' + name + '/bin/node', '#!/bin/sh\\n' + line + '\\n', { mode: 0o755 });
    if (line !== 'half') writeFileSync('node_modules/' + name + '/package.json', '{"bin":{"node":"bin/node"}}');
    writeFileSync('../npm-was-here', '');
  }
  function fail(text) {
    console.error(text);
    process.exitCode = 1;
  }
  ends[process.env.NPM_ENDS]();`;

/** The checkout's launcher, told that it runs on Node 20; says where Node is, and that npm has begun. */
const launcher = `
  import { existsSync, rmSync } from 'node:fs';
  Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });
  const { handleStopSignals, isStopped } = await import('./scripts/lib/children.mjs');
  const { findNode } = await import('./scripts/lib/node-binary.mjs');
  handleStopSignals();
  rmSync('npm-was-here', { force: true });
  const look = setInterval(() => existsSync('npm-was-here') && console.log('npm works'), 10);
  await findNode().then(
    (path) => console.log(isStopped() ? 'stopped' : 'found ' + path),
    (error) => console.log(error.constructor.name + ': ' + error.message),
  );
  clearInterval(look);
  process.disconnect();`;

let checkout: string;

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  cpSync(scripts, join(checkout, 'scripts'), { recursive: true });
  writeFileSync(join(checkout, 'npm-cli.js'), npm);
  writeFileSync(join(checkout, 'launcher.mjs'), launcher);
});

afterEach(() => rmSync(checkout, { recursive: true, force: true }));

type Fetch = 'well' | 'useless' | 'offline' | 'half';

function launch(fetch: Fetch): Child {
  const env = {
    npm_execpath: join(checkout, 'npm-cli.js'),
    NPM_ENDS: fetch,
    REAL_NODE: process.execPath,
  };
  return runNode(['launcher.mjs'], env, checkout);
}

async function lastLine(child: Child): Promise<string> {
  const { stdout, stderr } = await child.ended();
  expect(stderr).toBe('');
  return stdout.trim().split('\n').at(-1) ?? '';
}

async function fetched(fetch: Fetch): Promise<string> {
  const child = launch(fetch);
  if (fetch === 'half') {
    await child.printed('npm works');
    child.process.kill('SIGINT');
  }
  return await lastLine(child);
}

const found = /^found .*\/\.node\/node_modules\/node-[\w-]+\/bin\/node$/;

describe('a Node that is too old', () => {
  test('fetches a newer one into the checkout, once', async () => {
    expect(await fetched('well')).toMatch(found);
    expect(await fetched('offline')).toMatch(found);
    expect(existsSync(join(checkout, 'npm-was-here'))).toBe(false);
    expect(readdirSync(checkout).filter((name) => name.startsWith('.'))).toEqual(['.node']);
  });

  test.each<[Fetch, RegExp]>([
    ['half', /^stopped$/],
    ['useless', /^LaunchError: .*\(what came does not run\): install Node 24\.$/],
    ['offline', /^LaunchError: .*\(ENOTFOUND: network request failed\): install Node 24\.$/],
  ])('after a fetch that ended %s fetches it at the next start', async (end, said) => {
    expect(await fetched(end)).toMatch(said);
    expect(await fetched('well')).toMatch(found);
  });
});
