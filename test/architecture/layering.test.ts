import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/** What the linter cannot say about the sources: who may know whom, and where vendors have a name. */

const root = fileURLToPath(new URL('../../src', import.meta.url));

const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path: path.split(sep).join('/'), text: readFileSync(join(root, path), 'utf8') }));

interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
  /** A package, or a path below src. */
  readonly to: string;
}

const imports: Import[] = files.flatMap(({ path, text }) =>
  [...text.matchAll(/^(import|export)\s+(type\s+)?(?:[^'"();]*?\sfrom\s+)?'([^']+)'/gm)].map((match) => {
    const target = match[3] ?? '';
    const to = target.startsWith('.')
      ? relative(root, join(root, dirname(path), target))
          .split(sep)
          .join('/')
      : target;
    return { from: path, typeOnly: match[2] !== undefined, to };
  }),
);

/** Folder → what it may import: folders of src with a slash, packages without. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: ['core/', 'zod', 'ipaddr.js', 'node:crypto', 'node:buffer', 'node:net'],
  providers: ['core/', 'providers/', 'zod', 'node:crypto', 'node:buffer'],
  chat: ['core/', 'providers/', 'chat/', 'zod', 'lru-cache'],
};

/** Folder → folders it must stay clear of. `types` allows what leaves no trace at run time. */
const mustNotImport: readonly (readonly [folder: string, clearOf: string, types: boolean])[] = [
  ['http', 'adapters/', true],
  ['http', 'providers/', false],
  ['adapters', 'http/', false],
  ['adapters', 'providers/', false],
  ['adapters', 'settings.ts', true],
  ['adapters', 'telemetry/', true],
  ['http', 'telemetry/', true],
  ['telemetry', 'adapters/', true],
  ['telemetry', 'settings.ts', true],
  ...['http', 'adapters', 'telemetry', 'demo'].map((folder) => [folder, 'wiring/', true] as const),
];

const show = ({ from, to }: Import): string => `${from} imports ${to}`;

describe('imports', () => {
  test('are found', () => {
    expect(imports.length).toBeGreaterThan(200);
  });

  test.each(Object.entries(mayImport))('of %s go only where they may', (folder, allowed) => {
    const wrong = imports.filter(
      ({ from, to }) =>
        from.startsWith(`${folder}/`) &&
        !allowed.some((name) => (name.endsWith('/') ? to.startsWith(name) : to === name)),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test.each(mustNotImport)('of %s stay clear of %s (types allowed: %s)', (folder, clearOf, types) => {
    const wrong = imports.filter(
      ({ from, to, typeOnly }) =>
        from.startsWith(`${folder}/`) && to.startsWith(clearOf) && !(types && typeOnly),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test('of a folder never go to the composition root or the process', () => {
    const wrong = imports.filter(({ from, to }) => from.includes('/') && /^(app|main)\.ts$/.test(to));
    expect(wrong.map(show)).toEqual([]);
  });
});

/** Code without comments, and without the names of npm packages. */
const codeOf = (text: string): string =>
  text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')
    .replace(/from '[^']*'/g, '');

function filesWith(pattern: RegExp, among: RegExp): string[] {
  return files
    .filter(({ path, text }) => among.test(path) && pattern.test(codeOf(text)))
    .map(({ path }) => path);
}

/** `Date` as a calendar is pure: `Date.UTC(…)` and `new Date(…)` of something. All else may read the clock. */
const clock = /(?<!\bnew )\bDate\b(?!\.UTC\()|\bnew Date\b(?!\(\s*[^)\s])/;

test.each([
  ['Date.now()', true],
  ['const now = Date.now;', true],
  ['new Date()', true],
  ['new Date( )', true],
  ['new Date;', true],
  ['Date()', true],
  ['const { now } = Date;', true],
  ['Date.UTC(2026, 3, 23)', false],
  ['new Date(ms).toISOString()', false],
  ['new Date(text)', false],
  ['readDate(x)', false],
])('%s reads the clock: %s', (code, reads) => {
  expect(clock.test(code)).toBe(reads);
});

test('core and providers know no clock, no chance and no process', () => {
  const pure = /^(core|providers)\//;
  expect(filesWith(clock, pure)).toEqual([]);
  expect(filesWith(/\bMath\.random\b|\bprocess\b|\bperformance\b|\brandomUUID\b/, pure)).toEqual([]);
});

test('vendors have a name only where they are translated, listed and configured', () => {
  const elsewhere = /^(?!providers\/|core\/provider-name\.ts$|settings\.ts$|demo\/)/;
  expect(filesWith(/(['"`])(openai|anthropic|together|sarvam)\1/, elsewhere)).toEqual([]);
});

test('only one file opens connections to providers', () => {
  const users = imports.filter(({ to }) => to === 'undici').map(({ from }) => from);
  expect(new Set(users)).toEqual(new Set(['adapters/upstream/upstream-http.ts']));
  // `connect`, `request`, `Socket` and all the rest open connections.
  const opensNone = /^(isIP|STATUS_CODES|METHODS|IncomingMessage|createServer|Server|createSecureContext)$/;
  const named = /^import \{([^}]*)\} from 'node:(?:net|tls|https?|http2)'/gm;
  const opening = files.filter(({ text }) =>
    [...text.matchAll(named)].some(([, names = '']) =>
      names.split(',').some(
        (name) =>
          !opensNone.test(
            name
              .trim()
              .replace(/ as .*/, '')
              .replace(/^type .*/, 'isIP'),
          ),
      ),
    ),
  );
  expect(opening.map(({ path }) => path)).toEqual(['adapters/upstream/guarded-connector.ts']);
});

test('only heap-limit.ts asks for the size of the heap: budgets take their share of the old generation', () => {
  const asking = files.filter(({ text }) => text.includes('heap_size_limit')).map(({ path }) => path);
  expect(asking).toEqual(['heap-limit.ts']);
});

test('providers read what is on the wire by the names of its types, and those say where they were read', () => {
  const sources = files.filter(({ path }) => path.startsWith('providers/'));
  const lookups = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:\b[a-z]\w*|\))(?:\?\.)?\['\w+'\]/g)].map(([found]) => `${path}: ${found}`),
  );
  expect(lookups).toEqual([]);
  const wires = sources.filter(({ path }) => path.endsWith('/wire.ts'));
  expect(wires.map(({ path }) => path).sort()).toEqual([
    'providers/anthropic/wire.ts',
    'providers/openai-compatible/wire.ts',
  ]);
  for (const { text } of wires) expect(text).toMatch(/\bread\s[\s*]*20\d\d-\d\d-\d\d/);
});

test('no comment goes past column 120', () => {
  const wide = files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .map((line, index) => ({ line, at: `${path}:${index + 1}` }))
      .filter(({ line }) => line.length > 120 && /^\s*(\/\/|\/?\*)/.test(line)),
  );
  expect(wide.map(({ at }) => at)).toEqual([]);
});

test('no source file has more than 250 lines, blank ones not counted', () => {
  const linesOf = (text: string): number => text.split('\n').filter((line) => line.trim() !== '').length;
  expect(files.filter(({ text }) => linesOf(text) > 250).map(({ path }) => path)).toEqual([]);
});
