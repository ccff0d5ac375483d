import { execFileSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readTablesFile, watchTablesFile } from '../../../src/adapters/tables/tables-file.ts';

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>();
  return { ...real, openSync: vi.fn(real.openSync) };
});

const text = (model: string): string =>
  JSON.stringify({
    tiers: Object.fromEntries(
      ['cheap', 'balanced', 'premium'].map((tier) => [tier, [{ provider: 'sarvam', model }]]),
    ),
  });

test('an edit that comes while no file can be opened is taken once one can be', {
  timeout: 60_000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tables-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'tables.yaml');
  await writeFile(path, text('one'));
  const problems: string[] = [];
  const source = await watchTablesFile(path, { onProblem: ({ message }) => problems.push(message) });
  onTestFinished(() => source.close());
  vi.mocked(openSync).mockImplementationOnce(() => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  });
  await writeFile(join(directory, 'next'), text('two'));
  await rename(join(directory, 'next'), path);
  const model = (): string | undefined => source.current().tier('cheap')[0]?.model;
  await expect.poll(model, { timeout: 45_000 }).toBe('two');
  expect(problems).toEqual([`cannot open ${path} (EMFILE)`]);
  expect(source.status()).toMatchObject({ lastReloadOk: true, loads: { unreadable: 1 } });
});

test('a pipe in place of the tables holds up nothing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tables-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'tables.yaml');
  execFileSync('mkfifo', [path]);
  expect(readTablesFile(path)).toMatchObject({ fault: { message: `${path} is not a regular file` } });
});
