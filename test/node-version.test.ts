import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oldestNode, whyTooOld } from '../src/node-version.ts';

test.each(['18.20.8', '20.20.2', '22.18.0', '22.2.0'])(
  'Node %s is too old, and hears what is needed',
  (version) => {
    expect(whyTooOld(version)).toBe(`Node 22.19 or newer is needed, this is ${version}: install Node 24.`);
  },
);

test.each(['22.19.0', '22.20.1', '23.0.0', '24.21.0', '100.0.0'])('Node %s will do', (version) => {
  expect(whyTooOld(version)).toBeNull();
});

test('package.json and the launchers ask for the same', async () => {
  const root = join(import.meta.dirname, '..');
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  expect(engines.node).toBe(`>=${oldestNode.join('.')}`);
  const { minimumNode } = (await import('../scripts/lib/project.mjs' as string)) as { minimumNode: number[] };
  expect(minimumNode).toEqual([...oldestNode]);
});
