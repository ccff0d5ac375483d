import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { codeSpans, exists, readDocument, tableRows } from '../docs/documents.ts';

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

const written = /^(?:import|export)\s+(?<type>type\s+)?(?:[^'"();]*?\sfrom\s+)?'(?<target>[^']+)'/gm;
const awaited = /\bawait import\('(?<target>[^']+)'\)/g;

const imports: Import[] = files.flatMap(({ path, text }) =>
  [...text.matchAll(written), ...text.matchAll(awaited)].map(({ groups }) => {
    const target = groups?.['target'] ?? '';
    const to = target.startsWith('.')
      ? relative(root, join(root, dirname(path), target))
          .split(sep)
          .join('/')
      : target;
    return { from: path, typeOnly: groups?.['type'] !== undefined, to };
  }),
);

/** A room and what it may import: rooms of src end in a slash or in `.ts`, all else are packages. */
interface Room {
  /** What runs. */
  readonly values: readonly string[];
  /** What leaves no trace at run time. */
  readonly types?: readonly string[];
}

const everyAdapter = 'adapters/';

/** In the order of the arrows: a room knows what stands above it, and nothing below. */
const rooms: Readonly<Record<string, Room>> = {
  'core/': { values: ['zod', 'ipaddr.js', 'node:crypto'] },
  'providers/': { values: ['core/', 'node:buffer', 'node:crypto'] },
  'due-timer.ts': { values: [] },
  'fair-turns.ts': { values: ['core/'] },
  'timed-turns.ts': { values: [] },
  'once-a-minute.ts': { values: [] },
  'chat/': { values: ['core/', 'due-timer.ts', 'lru-cache'], types: ['providers/'] },
  'limits/': { values: ['core/', 'lru-cache'], types: ['chat/'] },
  'adapters/system/': {
    values: [
      'core/',
      ...['crypto', 'fs', 'fs/promises', 'os', 'stream/consumers', 'tls', 'v8', 'vm'].map(
        (name) => `node:${name}`,
      ),
    ],
    types: ['chat/'],
  },
  'adapters/cache/': { values: ['core/', 'lru-cache'], types: ['chat/'] },
  'adapters/redis/': {
    values: ['core/', 'adapters/system/', 'ioredis'],
    types: ['chat/', 'limits/', 'node:net', 'node:tls'],
  },
  'adapters/spool/': { values: ['node:fs/promises', 'node:path', 'node:sqlite', 'node:zlib'] },
  'adapters/tables/': {
    values: ['core/', 'yaml', 'node:crypto', 'node:fs', 'node:fs/promises', 'node:path'],
  },
  'adapters/kubernetes/': {
    values: ['adapters/tables/', '@kubernetes/client-node', 'node:crypto', 'node:timers/promises'],
  },
  'adapters/postgres/': {
    values: [
      ...[
        'core/',
        'adapters/spool/',
        'adapters/system/',
        'due-timer.ts',
        'fair-turns.ts',
        'pg',
        'postgres',
        'lru-cache',
        'node:crypto',
        'node:fs',
      ],
      ...['node:net', 'node:os', 'node:timers/promises'],
    ],
    types: ['chat/', 'pino', 'node:events', 'node:stream', 'node:tls'],
  },
  'adapters/sidecar/': {
    values: ['core/', 'adapters/postgres/', 'yaml', 'node:crypto', 'node:fs'],
    types: ['adapters/system/', 'chat/'],
  },
  'adapters/upstream/': {
    values: [
      ...[
        'core/',
        'timed-turns.ts',
        'undici',
        'node:crypto',
        'node:dgram',
        'node:dns',
        'node:fs',
        'node:fs/promises',
        'node:net',
        'node:os',
      ],
      ...['ipaddr.js', 'lru-cache', 'node:stream', 'node:timers', 'node:tls', 'node:zlib'],
    ],
    types: ['chat/'],
  },
  'http/': {
    values: [
      ...['chat/', 'core/', 'limits/', 'timed-turns.ts', 'fastify', '@fastify/under-pressure', 'zod'],
      ...['node:buffer', 'node:crypto', 'node:http', 'node:stream', 'node:timers/promises'],
    ],
    types: [everyAdapter, 'node:net'],
  },
  'telemetry/': {
    values: [
      ...[
        'chat/',
        'core/',
        'http/',
        'limits/',
        'once-a-minute.ts',
        '@opentelemetry/',
        'import-in-the-middle/',
        'pino',
        'prom-client',
      ],
      'node:crypto',
      'node:timers/promises',
    ],
    types: ['tracing-settings.ts', 'node:http'],
  },
  'heap-limit.ts': { values: ['node:v8'] },
  'engine-flags.ts': { values: ['node:v8'] },
  'node-version.ts': { values: [] },
  'package-version.ts': { values: ['node:fs'] },
  'kubernetes-api.ts': { values: [] },
  'tracing-settings.ts': { values: ['core/', 'zod'] },
  'egress-settings.ts': { values: ['core/', 'zod'] },
  'environment.ts': { values: ['egress-settings.ts', 'tracing-settings.ts', 'zod'] },
  'ignored-variables.ts': { values: ['environment.ts'] },
  'setting-conflicts.ts': { values: ['tracing-settings.ts'], types: ['environment.ts'] },
  'process-limits.ts': {
    values: ['adapters/cache/', 'adapters/system/', 'adapters/upstream/', 'heap-limit.ts'],
    types: ['environment.ts', 'zod'],
  },
  'settings.ts': {
    values: [
      ...['core/', 'egress-settings.ts', 'environment.ts', 'ignored-variables.ts', 'kubernetes-api.ts'],
      'setting-conflicts.ts',
      'process-limits.ts',
      ...['tracing-settings.ts', 'node:fs'],
    ],
  },
  'sealing-keys.ts': { values: ['settings.ts', 'node:crypto'], types: ['core/'] },
  'stop-signals.ts': { values: [] },
  'wiring/': {
    values: [
      ...[
        'core/',
        'providers/',
        'chat/',
        'limits/',
        'fair-turns.ts',
        'once-a-minute.ts',
        everyAdapter,
        'http/',
        'telemetry/',
        'settings.ts',
        'sealing-keys.ts',
        'package-version.ts',
        'stop-signals.ts',
      ],
      ...['node:crypto', 'node:net', 'node:timers/promises', 'node:url'],
    ],
    types: ['fastify', 'pg', 'pino', 'node:http'],
  },
  'gateway-process.ts': {
    values: ['engine-flags.ts', 'telemetry/', 'wiring/'],
    types: ['settings.ts'],
  },
  'demo/': {
    values: ['node:crypto', 'node:events', 'node:http', 'node:timers/promises'],
    types: ['node:net'],
  },
  'dev/': {
    values: [
      ...['pg', 'zod', 'node:child_process', 'node:crypto', 'node:fs', 'node:module', 'node:net', 'node:os'],
      ...['node:path', 'node:timers/promises'],
    ],
    types: ['core/'],
  },
  'commands/': {
    values: [
      ...[
        everyAdapter,
        'core/',
        'demo/',
        'gateway-process.ts',
        'http/',
        'package-version.ts',
        'settings.ts',
        'stop-signals.ts',
      ],
      ...['commander', 'node:crypto', 'node:events', 'node:timers/promises'],
    ],
    types: ['pg'],
  },
  'main.ts': { values: ['commands/', 'node-version.ts', 'settings.ts'] },
  'dev.ts': {
    values: ['core/', 'demo/', 'dev/', 'gateway-process.ts', 'settings.ts', 'stop-signals.ts', 'node:path'],
  },
};

const holds = (name: string, path: string): boolean =>
  name.endsWith('/') ? path.startsWith(name) : path === name;

const isWithin = (names: readonly string[], path: string): boolean => names.some((name) => holds(name, path));

const show = ({ from, to, typeOnly }: Import): string =>
  `${from} imports ${typeOnly ? 'a type of ' : ''}${to}`;

describe('imports', () => {
  test('are found', () => {
    expect(imports.length).toBeGreaterThan(200);
  });

  test('are judged in every file: each stands in one room of the table', () => {
    const homeless = files.filter(
      ({ path }) => Object.keys(rooms).filter((r) => holds(r, path)).length !== 1,
    );
    expect(homeless.map(({ path }) => path)).toEqual([]);
  });

  test.each(Object.entries(rooms))('of %s go only where they may', (room, { values, types = [] }) => {
    const wrong = imports.filter(
      ({ from, to, typeOnly }) =>
        holds(room, from) && !isWithin([room, ...values, ...(typeOnly ? types : [])], to),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  test.each(Object.entries(rooms))('of %s use what they may', (room, { values, types = [] }) => {
    const own = imports.filter(({ from }) => holds(room, from));
    const idle = [
      ...values.filter((name) => !own.some(({ to, typeOnly }) => !typeOnly && holds(name, to))),
      ...types.filter((name) => !own.some(({ to, typeOnly }) => typeOnly && holds(name, to))),
    ];
    expect(idle).toEqual([]);
  });

  test('never go up: of two rooms at most one knows the other', () => {
    const names = Object.keys(rooms);
    const up = imports.filter(({ from, to, typeOnly }) => {
      const [below, above] = [names.findIndex((r) => holds(r, from)), names.findIndex((r) => holds(r, to))];
      return !typeOnly && above > below;
    });
    expect(up.map(show)).toEqual([]);
  });
});

describe('the column of ARCHITECTURE.md on what may be imported', () => {
  const rows = tableRows(readDocument('ARCHITECTURE.md'), 'folder', 'holds', 'may import');

  test.each(rows)('says for %s what the table here says', (name, _holds, said = '') => {
    const [folder = ''] = codeSpans(name);
    const isPure = folder === 'core/' || folder === 'providers/';
    const within = Object.entries(rooms).flatMap(([room, allowed]) => (holds(folder, room) ? allowed : []));
    const shown = (named: readonly string[]): string[] =>
      named.filter((to) => !holds(folder, to) && (isPure || exists(`src/${to}`)));
    const values = new Set(shown(within.flatMap((room) => room.values)));
    const types = new Set(shown(within.flatMap((room) => room.types ?? [])));
    const [saidOfValues = '', saidOfTypes = ''] = said.split('; types of ');
    expect(codeSpans(saidOfValues).sort()).toEqual([...values].sort());
    expect(codeSpans(saidOfTypes).sort()).toEqual([...types].filter((to) => !values.has(to)).sort());
  });
});

/** What is loaded with a file, and with all that it imports: `await import` loads later. */
function loadedWith(path: string, loaded = new Set<string>()): ReadonlySet<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  const text = files.find((file) => file.path === path)?.text ?? '';
  for (const { groups } of text.matchAll(written)) {
    const target = groups?.['target'] ?? '';
    if (groups?.['type'] !== undefined) continue;
    loadedWith(target.startsWith('.') ? join(dirname(path), target).split(sep).join('/') : target, loaded);
  }
  return loaded;
}

test.each(['main.ts', 'dev.ts', 'commands/serve.ts', 'gateway-process.ts'])(
  '%s loads nothing that tracing has to patch first',
  (path) => {
    const patched = ['pg', 'ioredis', 'undici', 'pino'].filter((name) => loadedWith(path).has(name));
    expect(patched).toEqual([]);
  },
);

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

test('a file beside the source is named by its path: what a URL makes of spaces and letters is none', () => {
  expect(filesWith(/import\.meta\.url,?\s*\)\s*\.pathname/, /./)).toEqual([]);
});

test('constants are named as all else is', () => {
  expect(filesWith(/\b(?:const|let) [A-Z][A-Z0-9_]*\s*[=:]/, /./)).toEqual([]);
});

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

test("users' servers are told by their traits, by name only where the name is what is said", () => {
  const said = [
    'adapters/postgres/provider-keys.ts', // the predicate of an index
    'dev/demo-account.ts', // a client of the public API
  ];
  const elsewhere = /^(?!providers\/|core\/provider-name\.ts$)/;
  expect(filesWith(/(['"])self_hosted\1/, elsewhere).sort()).toEqual(said);
});

/** At the top of a file: what others may import, and what stands for something in the whole file. */
const declared =
  /^(?<exported>export )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type) (?<name>\w+)/gm;

test('a name that is exported is the name of one thing: no other file declares it', () => {
  const declarations = files.flatMap(({ path, text }) =>
    [...text.matchAll(declared)].map(({ groups }) => ({
      name: groups?.['name'] ?? '',
      isExported: groups?.['exported'] !== undefined,
      path,
    })),
  );
  const exporters = new Map(
    declarations.flatMap(({ name, isExported, path }) => (isExported ? [[name, path]] : [])),
  );
  expect(exporters.size).toBeGreaterThan(1000);
  const twins = declarations.filter(({ name, path }) => exporters.has(name) && exporters.get(name) !== path);
  expect(twins.map(({ name, path }) => `${name}: ${path} and ${exporters.get(name)}`)).toEqual([]);
});

test('only one file opens connections to providers', () => {
  const users = imports.filter(({ to }) => to === 'undici').map(({ from }) => from);
  expect(new Set(users)).toEqual(new Set(['adapters/upstream/undici-upstream.ts']));
  // `connect`, `request`, `Socket` and all the rest open connections.
  const opensNone =
    /^(isIP|STATUS_CODES|METHODS|IncomingMessage|ServerResponse|createServer|Server|createSecureContext)$/;
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
  expect(opening.map(({ path }) => path)).toEqual(['adapters/upstream/open-socket.ts']);
  const openers = imports.filter(
    ({ to, typeOnly }) => to === 'adapters/upstream/open-socket.ts' && !typeOnly,
  );
  const guarded = ['adapters/upstream/guarded-connector.ts', 'adapters/upstream/user-tls.ts'];
  expect(openers.map(({ from }) => from)).toEqual(guarded);
  // It only goes within a connection that is open.
  const within = imports.filter(({ to }) => to === guarded[1]).map(({ from }) => from);
  expect(within).toEqual([guarded[0]]);
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
