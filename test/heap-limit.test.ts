import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { oldGenerationBytes } from '../src/heap-limit.ts';

const mebibyte = 1024 * 1024;
const module = new URL('../src/heap-limit.ts', import.meta.url).href;

/** What a process started like this takes for its limit, in MiB. */
function limitOf(flags: readonly string[], nodeOptions: string): number {
  const script = `import { heapLimitBytes } from '${module}'; console.log(heapLimitBytes(process.env));`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [...flags, '--experimental-strip-types', '--no-warnings', '--input-type=module', '--eval', script],
    { env: { ...process.env, NODE_OPTIONS: nodeOptions }, encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  return Number(stdout) / mebibyte;
}

test.each<[readonly string[], string, number]>([
  [['--max-old-space-size=307'], '', 307],
  [[], '--max-old-space-size=307', 307],
  [[], '--max-old-space-size=96', 96],
  [['--max-old-space-size=2048'], '', 2048],
  [['--max-semi-space-size=16'], '--max-old-space-size=307', 307],
  [[], '--max-old-space-size=307 --max_semi_space_size=16', 307],
  [[], '--max-old-space-size=307 --max-semi-space-size=1', 307],
])('the old generation is what is watched, whatever the young one: %j %s', (flags, nodeOptions, expected) => {
  expect(limitOf(flags, nodeOptions)).toBe(expected);
});

test('a heap limited as a whole leaves something', () => {
  expect(oldGenerationBytes(100 * mebibyte, '--max-heap-size=100')).toBe(25 * mebibyte);
});
