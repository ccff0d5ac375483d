import { expect, test } from 'vitest';
import { clientConnectionsWithin } from '../../../src/adapters/upstream/open-files.ts';

const mebibyte = 1024 * 1024;

test.each([
  ['half of the files', 1024, 4096, 512],
  ['half of the files of a container', 20_000, 4096, 10_000],
  ['what the heap of the smallest pod bears', 20_000, 307, 4_912],
  ['the same where files are not limited', Number.POSITIVE_INFINITY, 307, 4_912],
  ['what a sidecar bears', 1_048_576, 96, 1_536],
])('clients have %s', (_what, files, heap, connections) => {
  expect(clientConnectionsWithin(files, heap * mebibyte)).toBe(connections);
});
