import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as nextTurn } from 'node:timers/promises';
import { serialize } from 'node:v8';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TablesFault, TablesSource } from '../../../src/adapters/tables/last-good-tables.ts';
import { readTables } from '../../../src/adapters/tables/last-good-tables.ts';
import { watchTablesFile } from '../../../src/adapters/tables/tables-file.ts';
import type { RoutingTables } from '../../../src/core/tables/tables.ts';

/** SPEC-sized promise of a reload: a swap is in use after this long at most. */
const appliedWithinMs = 45_000;

const tablesText = (model: string): string => `
tiers:
  cheap: [{ provider: sarvam, model: ${model} }]
  balanced: [{ provider: sarvam, model: ${model} }]
  premium: [{ provider: sarvam, model: ${model} }]
`;
const modelOf = (tables: RoutingTables): string => tables.tier('cheap')[0]?.model ?? '';

let directory: string;
let path: string;
let source: TablesSource | null = null;
const events = new EventEmitter();
let reloads: RoutingTables[];
let problems: TablesFault[];

async function watchIt(): Promise<TablesSource> {
  source = await watchTablesFile(path, {
    onReload: (tables) => {
      reloads.push(tables);
      events.emit('reload');
    },
    onProblem: (problem) => {
      problems.push(problem);
      events.emit('problem');
    },
  });
  return source;
}

async function until(event: 'reload' | 'problem', done: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(appliedWithinMs);
  while (!done()) await once(events, event, { signal });
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tables-'));
  path = join(directory, 'tables.yaml');
  reloads = [];
  problems = [];
});

afterEach(async () => {
  source?.close();
  source = null;
  await rm(directory, { recursive: true, force: true });
});

describe('the first load', () => {
  test('gives tables of generation 1', async () => {
    await writeFile(path, tablesText('one'));
    const tables = await watchIt();
    expect(modelOf(tables.current())).toBe('one');
    expect(tables.status()).toMatchObject({ generation: 1, lastReloadOk: true, lastProblem: null });
    expect(tables.status().hash).toMatch(/^[0-9a-f]{16}$/);
  });

  test.each([
    ['is missing', null, 'ENOENT'],
    ['is empty', '', 'tables.yaml'],
    ['is not YAML', 'tiers: [', 'not YAML or JSON'],
    ['has an empty tier', tablesText('one').replace(/cheap: .*/, 'cheap: []'), 'tiers.cheap'],
    ['names an unknown provider', tablesText('one').replace('sarvam', 'nobody'), 'provider'],
    ['has an unknown field', `${tablesText('one')}tierz: {}\n`, 'tierz'],
    ['has two documents', `${tablesText('one')}---\n${tablesText('two')}`, 'not YAML or JSON'],
    ['names a key twice', `${tablesText('one')}${tablesText('two')}`, 'not YAML or JSON'],
    ['is too large', `${tablesText('one')}# ${'x'.repeat(1024 * 1024)}`, 'larger than'],
  ])('stops the start when the file %s', async (_what, text, word) => {
    if (text !== null) await writeFile(path, text);
    await expect(watchIt()).rejects.toThrow(word);
  });

  test('names are texts of their own, whatever else the file holds: put together with them, others stay as small', () => {
    const read = readTables(`# a comment with …${tablesText('a-model-of-many-letters')}`);
    const model = read.ok ? (read.document.tiers.cheap[0]?.model ?? '') : '';
    expect(model).toBe('a-model-of-many-letters');
    // V8's own form: its third byte says of what width the characters are.
    expect(serialize(model).toString('latin1', 2, 3)).toBe('"');
  });

  test('stops the start when the path is a directory', async () => {
    await mkdir(path);
    await expect(watchIt()).rejects.toThrow('not a regular file');
  });
});

test('refuses a document that grows when its aliases are expanded', () => {
  const levels = Array.from({ length: 12 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`);
  const read = readTables(`a0: &a0 x\n${levels.join('\n')}\n`);
  expect(read).toMatchObject({ ok: false, fault: { kind: 'invalid' } });
});

test.each([
  ['nested without end', '['.repeat(50_000)],
  ['of one long line', `tiers: "${'x'.repeat(500_000)}"`],
  ['of many keys', Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join('\n')],
])('refuses a document %s with a short message', (_what, text) => {
  const read = readTables(text);
  expect(read.ok).toBe(false);
  expect(read.ok ? '' : read.fault.message.slice(0, 5000)).toBe(read.ok ? '' : read.fault.message);
});

test('a mutated document is read or refused, never thrown over', () => {
  const lines = tablesText('one').trim().split('\n');
  const mutation = fc.record({
    line: fc.nat(lines.length - 1),
    text: fc.oneof(
      fc.string(),
      fc.constantFrom('', '- x', 'tiers: *a', '? !!binary x', 'prices: [{}]', '__proto__: 1'),
    ),
  });
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 3 }), (mutations) => {
      const mutated = [...lines];
      for (const { line, text } of mutations) mutated[line] = text;
      const read = readTables(mutated.join('\n'));
      if (!read.ok) expect(read.fault.message).not.toBe('');
    }),
  );
});

test('a document and its reformatted twin have one hash', () => {
  const json = {
    tiers: {
      premium: [{ model: 'm', provider: 'sarvam' }],
      cheap: [{ model: 'm', provider: 'sarvam' }],
      balanced: [{ model: 'm', provider: 'sarvam' }],
    },
  };
  const [yaml, twin, other] = [
    readTables(tablesText('m')),
    readTables(JSON.stringify(json)),
    readTables(tablesText('n')),
  ];
  expect(yaml.ok && twin.ok && yaml.hash === twin.hash).toBe(true);
  expect(yaml.ok && other.ok && yaml.hash !== other.hash).toBe(true);
});

describe('a change of the file', () => {
  test.each<[string, (text: string) => Promise<void>]>([
    ['is overwritten', (text) => writeFile(path, text)],
    [
      'is replaced by a rename',
      async (text) => {
        await writeFile(`${path}.new`, text);
        await rename(`${path}.new`, path);
      },
    ],
    [
      'is deleted and written again',
      async (text) => {
        await rm(path);
        await writeFile(path, text);
      },
    ],
  ])('is taken into use when the file %s', async (_how, change) => {
    await writeFile(path, tablesText('one'));
    const tables = await watchIt();
    const held = tables.current();
    await change(tablesText('two'));
    await until('reload', () => reloads.length > 0);
    expect(modelOf(tables.current())).toBe('two');
    expect(tables.status()).toMatchObject({ generation: 2, lastReloadOk: true });
    expect(modelOf(held)).toBe('one');
  });

  test('is followed when the whole directory is replaced, and again afterwards', async () => {
    await writeFile(path, tablesText('one'));
    const tables = await watchIt();
    const other = await mkdtemp(join(tmpdir(), 'tables-'));
    await writeFile(join(other, 'tables.yaml'), tablesText('two'));
    await rename(directory, `${directory}-old`);
    await rename(other, directory);
    await until('reload', () => reloads.length === 1);
    await writeFile(path, tablesText('three'));
    await until('reload', () => reloads.length === 2);
    expect(modelOf(tables.current())).toBe('three');
    await rm(`${directory}-old`, { recursive: true });
  });
});

test('applies each of 20 swaps of a mounted volume', async () => {
  // The layout of a ConfigMap volume: file -> ..data/file, ..data -> a dated directory, swapped by rename.
  const version = async (n: number): Promise<void> => {
    const name = `..2026_${n}`;
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, 'tables.yaml'), tablesText(`model-${n}`));
    await symlink(name, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    if (n > 0) await rm(join(directory, `..2026_${n - 1}`), { recursive: true });
  };
  await version(0);
  await symlink('..data/tables.yaml', path);
  const tables = await watchIt();
  for (let n = 1; n <= 20; n += 1) {
    await version(n);
    await until('reload', () => modelOf(tables.current()) === `model-${n}`);
  }
  expect(tables.status()).toMatchObject({ generation: 21, lastReloadOk: true, lastProblem: null });
  expect(problems).toEqual([]);
});

describe('a bad document', () => {
  test.each<[string, TablesFault['kind'], () => Promise<void>]>([
    ['is deleted', 'unreadable', () => rm(path)],
    ['is emptied', 'invalid', () => writeFile(path, '')],
    ['is not YAML', 'invalid', () => writeFile(path, '{{{')],
    [
      'has a negative price',
      'invalid',
      () =>
        writeFile(path, `${tablesText('x')}prices: [{provider: openai, model: x, input: "-1", output: "1"}]`),
    ],
  ])(
    'leaves the last good one in use when the file %s, until it is good again',
    async (_what, kind, spoil) => {
      await writeFile(path, tablesText('one'));
      const tables = await watchIt();
      await spoil();
      await until('problem', () => problems.length > 0);
      expect(modelOf(tables.current())).toBe('one');
      expect(problems[0]?.kind).toBe(kind);
      expect(tables.status()).toMatchObject({
        generation: 1,
        lastReloadOk: false,
        lastProblem: problems[0]?.message,
      });
      expect(tables.status().loads[kind]).toBeGreaterThan(0);

      await writeFile(path, tablesText('two'));
      await until('reload', () => reloads.length > 0);
      expect(modelOf(tables.current())).toBe('two');
      expect(tables.status()).toMatchObject({ generation: 2, lastReloadOk: true, lastProblem: null });
    },
  );

  test('is reported once however often it is read, and again after a good one', async () => {
    await writeFile(path, tablesText('one'));
    const tables = await watchIt();
    const swap = async (text: string): Promise<void> => {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    };
    await swap('tiers: 1');
    await until('problem', () => problems.length === 1);
    await swap('tiers: 1 # still');
    await swap('tiers: "a different fault"\nother: 1');
    await until('problem', () => problems.length === 2);
    await swap(tablesText('two'));
    await until('reload', () => reloads.length === 1);
    await swap('tiers: 1');
    await until('problem', () => problems.length === 3);
    expect(problems[2]?.message).toBe(problems[0]?.message);
    expect(tables.status().loads.invalid).toBeGreaterThanOrEqual(3);
  });
});

test('a file that was only touched is not a new generation', async () => {
  await writeFile(path, tablesText('one'));
  const tables = await watchIt();
  await writeFile(path, `# a comment\n${tablesText('one')}`);
  await writeFile(path, tablesText('two'));
  await until('reload', () => reloads.length > 0);
  expect(tables.status().generation).toBe(2);
});

test.each(['onReload', 'onProblem'] as const)(
  'a listener %s that throws is told as a bug, and the file is followed on',
  async (name) => {
    await writeFile(path, tablesText('first'));
    const bugs: unknown[] = [];
    const bug = new Error('a bug');
    let throws = true;
    const listener = (): void => {
      events.emit('reload');
      if (throws) throw bug;
    };
    source = await watchTablesFile(path, {
      [name]: listener,
      onBug: (cause) => {
        bugs.push(cause);
        events.emit('problem');
      },
    });
    const changed = (text: string) => writeFile(`${path}.new`, text).then(() => rename(`${path}.new`, path));
    await changed(name === 'onReload' ? tablesText('second') : 'tiers: nonsense');
    await until('problem', () => bugs.length > 0);
    expect(bugs).toEqual([bug]);
    throws = false;
    await changed(tablesText('third'));
    const signal = AbortSignal.timeout(appliedWithinMs);
    const following = source;
    while (modelOf(following.current()) !== 'third') {
      await (name === 'onReload' ? once(events, 'reload', { signal }) : nextTurn());
    }
    expect(bugs).toHaveLength(1);
  },
);
