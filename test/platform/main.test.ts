import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runNode } from './child.ts';

/** `dist/main.js` as a container starts it, with settings that it cannot begin with. */

const main = join(import.meta.dirname, '../../dist/main.js');

test.each<[what: string, env: Record<string, string>, said: RegExp]>([
  ['without a database', {}, /^model-gateway serve: DATABASE_URL is not set\. .*\n$/],
  ['with a number that is none', { PORT: 'eighty' }, /^model-gateway serve: PORT: .*\n$/],
])('%s it says so on one line, and nothing else', async (_what, env, said) => {
  const child = runNode([main], { PATH: process.env['PATH'] ?? '', ...env });
  const { code, stdout, stderr } = await child.ended();
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(said);
});

test('a Node that is too old hears which one is needed, before anything is imported that it lacks', async () => {
  const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
  const child = runNode(['--import', `data:text/javascript,${encodeURIComponent(older)}`, main]);
  expect(await child.ended()).toEqual({
    code: 1,
    stdout: '',
    stderr: 'model-gateway: Node 22.19 or newer is needed, this is 20.20.2: install Node 24.\n',
  });
});
