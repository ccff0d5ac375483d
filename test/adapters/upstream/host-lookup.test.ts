import dnsModule from 'node:dns';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { lookupBySystem, lookupWithoutThread } from '../../../src/adapters/upstream/host-lookup.ts';
import type { HostAddress, HostNames } from '../../../src/adapters/upstream/name-files.ts';
import { nameFiles } from '../../../src/adapters/upstream/name-files.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import type { NameServer, Reply } from './name-server.ts';
import { startNameServer } from './name-server.ts';

/** Without a network the system's look-up takes its time to fail. */
const offlineMs = 60_000;
let dns: NameServer | null = null;

afterEach(() => {
  dns?.close();
  dns = null;
});

async function nameServer(reply: Parameters<typeof startNameServer>[0]): Promise<NameServer> {
  dns = await startNameServer(reply);
  return dns;
}

function resolve(
  lookup: typeof lookupBySystem,
  host: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly HostAddress[]> {
  return new Promise((done, fail) => {
    lookup(host, signal, (error, addresses) => (error === null ? done(addresses) : fail(error)));
  });
}

describe('both look-ups', () => {
  test.each([
    ['127.0.0.1', [{ address: '127.0.0.1', family: 4 }]],
    ['::1', [{ address: '::1', family: 6 }]],
    [
      'localhost',
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
    [
      'a.localhost',
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
  ])('know %s without asking', async (host, expected) => {
    const { server, questions } = await nameServer(() => 'nxdomain');
    expect(await resolve(lookupBySystem, host)).toEqual(expected);
    expect(await resolve(lookupWithoutThread([server]), host)).toEqual(expected);
    expect(questions()).toBe(0);
  });

  test('fail for a name that nobody knows', { timeout: offlineMs }, async () => {
    const { server } = await nameServer(() => 'nxdomain');
    await expect(resolve(lookupBySystem, 'does-not-exist.invalid')).rejects.toThrow();
    await expect(resolve(lookupWithoutThread([server]), 'does-not-exist.invalid')).rejects.toThrow();
  });
});

describe("the system's look-up", () => {
  const answers: ((error: Error | null, addresses: readonly HostAddress[]) => void)[] = [];
  const systemLookup = dnsModule.lookup;
  let nowMs = 0;

  beforeEach(() => {
    answers.length = 0;
    nowMs = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const held = (_host: string, _options: object, done: (typeof answers)[number]) => void answers.push(done);
    Object.assign(dnsModule, { lookup: held });
    syncBuiltinESMExports();
  });

  afterEach(() => {
    vi.restoreAllMocks();
    Object.assign(dnsModule, { lookup: systemLookup });
    syncBuiltinESMExports();
  });

  const found: readonly HostAddress[] = [{ address: '10.0.0.1', family: 4 }];

  test('asks once for all who want a name, also for those who have left', async () => {
    for (let turn = 0; turn < 1_000; turn += 1) {
      const leaving = new AbortController();
      lookupBySystem('many.example', leaving.signal, () => expect.unreachable());
      leaving.abort();
    }
    const staying = [resolve(lookupBySystem, 'many.example'), resolve(lookupBySystem, 'many.example')];
    expect(answers).toHaveLength(1);
    answers[0]?.(null, found);
    expect(await Promise.all(staying)).toEqual([found, found]);
    const next = resolve(lookupBySystem, 'many.example');
    expect(answers).toHaveLength(2);
    answers[1]?.(null, found);
    await next;
  });

  test('asks anew after a second without an answer', async () => {
    const first = resolve(lookupBySystem, 'lost.example');
    nowMs += 1_001;
    const second = resolve(lookupBySystem, 'lost.example');
    const third = resolve(lookupBySystem, 'lost.example');
    expect(answers).toHaveLength(2);
    answers[1]?.(null, found);
    expect(await Promise.all([second, third])).toEqual([found, found]);
    answers[0]?.(new Error('lost'), []);
    await expect(first).rejects.toThrow('lost');
  });
});

describe('the look-up of user-chosen names', () => {
  test('gives the addresses of both families', async () => {
    const { server } = await nameServer((family) => (family === 4 ? ['10.0.0.1', '10.0.0.2'] : ['::1']));
    const found = await resolve(lookupWithoutThread([server]), 'both.example');
    expect(found.map(({ address }) => address).sort()).toEqual(['10.0.0.1', '10.0.0.2', '::1']);
  });

  test.each<[string, Reply]>([
    ['says no', 'nxdomain'],
    ['says that there is none', []],
    ['says nothing', 'silence'],
  ])('gives the one family when the server of the other %s', async (_what, other) => {
    const { server } = await nameServer((family) => (family === 4 ? ['10.0.0.1'] : other));
    expect(await resolve(lookupWithoutThread([server]), 'one.example')).toEqual([
      { address: '10.0.0.1', family: 4 },
    ]);
  });

  test('does not wait for a name that never answers once the caller gave up, nor do others behind it', {
    timeout: offlineMs,
  }, async () => {
    const silent = await nameServer(() => 'silence');
    const lookup = lookupWithoutThread([silent.server]);
    const budgets = Array.from({ length: 16 }, () => new AbortController());
    let calledBack = 0;
    for (const budget of budgets) lookup('stuck.example', budget.signal, () => (calledBack += 1));
    // With 16 names stuck, the threads of the system's look-up are free.
    expect(await resolve(lookupBySystem, '127.0.0.1')).toHaveLength(1);
    await expect(resolve(lookupBySystem, 'does-not-exist.invalid')).rejects.toThrow();
    for (const budget of budgets) budget.abort();
    await new Promise((done) => setImmediate(done));
    expect(calledBack).toBe(0);
  });
});

describe('names of the own network', () => {
  const searching =
    'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local. cluster.local\n';
  let folder = '';

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'names-'));
    await writeFile(
      join(folder, 'hosts'),
      '# a comment\n10.1.1.1 Model model.lan # another\nfd00::1 model\nrubbish x\n',
    );
    await writeFile(join(folder, 'resolv'), searching);
  });

  afterEach(() => rm(folder, { recursive: true }));

  const files = () => nameFiles(join(folder, 'hosts'), join(folder, 'resolv'));

  /** A cluster's name server: only full names are known, and a top-level domain that has an address. */
  const zone: Readonly<Record<string, string>> = {
    'llm.default.svc.cluster.local': '10.0.0.1',
    'llm.other.svc.cluster.local': '10.0.0.2',
    'llm.example': '192.0.2.1',
    llm: '192.0.2.66',
    ai: '192.0.2.67',
  };

  async function cluster() {
    const asked: string[] = [];
    const { server } = await nameServer((family, name) => {
      if (family === 4) asked.push(name);
      const address = zone[name];
      if (address === undefined) return 'nxdomain';
      return family === 4 ? [address] : [];
    });
    return { server, asked };
  }

  test.each([
    ['llm', '10.0.0.1', 1],
    ['llm.default', '10.0.0.1', 3],
    ['llm.other', '10.0.0.2', 3],
    ['llm.other.svc', '10.0.0.2', 4],
    ['llm.other.svc.cluster.local', '10.0.0.2', 1],
    ['llm.example', '192.0.2.1', 1],
    ['LLM.Example.', '192.0.2.1', 1],
    ['llm.', '192.0.2.66', 1],
    ['ai', '192.0.2.67', 4],
  ])('%s is %s, with %i questions', async (name, address, questions) => {
    const { server, asked } = await cluster();
    const found = await resolve(lookupWithoutThread([server], files()), name);
    expect(found).toEqual([{ address, family: 4 }]);
    expect(asked).toHaveLength(questions);
  });

  test('are not looked for in search domains where an answer was cut: what did not fit may have been addresses', async () => {
    const asked: string[] = [];
    dns = await startNameServer((_family, name) => {
      asked.push(name);
      return 'cut';
    });
    await expect(resolve(lookupWithoutThread([dns.server], files()), 'llm.example')).rejects.toMatchObject({
      code: 'ETRUNCATED',
    });
    expect(new Set(asked)).toEqual(new Set(['llm.example']));
  });

  test('are looked for in eight search domains, however many there are', async () => {
    const { server, asked } = await cluster();
    const domains = Array.from({ length: 20 }, (_, at) => `d${at}.example`);
    await writeFile(join(folder, 'resolv'), `search ${domains.join(' ')}\n`);
    await resolve(lookupWithoutThread([server], files()), 'ai');
    expect(asked).toEqual([...domains.slice(0, 8).map((domain) => `ai.${domain}`), 'ai']);
  });

  test.each(['model', 'MODEL', 'model.'])(
    '%s is where the hosts file says, without a question',
    async (name) => {
      const { server, asked } = await cluster();
      expect(await resolve(lookupWithoutThread([server], files()), name)).toEqual([
        { address: '10.1.1.1', family: 4 },
        { address: 'fd00::1', family: 6 },
      ]);
      expect(asked).toEqual([]);
    },
  );

  test('are read anew when their files change, and are none without files', async () => {
    const { server } = await cluster();
    const lookup = lookupWithoutThread([server], files());
    expect(await resolve(lookup, 'model.lan')).toEqual([{ address: '10.1.1.1', family: 4 }]);
    await writeFile(join(folder, 'hosts'), '10.1.1.22 model.lan\n');
    expect(await resolve(lookup, 'model.lan')).toEqual([{ address: '10.1.1.22', family: 4 }]);
    await rm(join(folder, 'hosts'));
    await rm(join(folder, 'resolv'));
    await expect(resolve(lookup, 'model.lan')).rejects.toThrow();
    await writeFile(join(folder, 'resolv'), searching);
    expect(await resolve(lookup, 'llm.default')).toEqual([{ address: '10.0.0.1', family: 4 }]);
  });

  test('are found at once while a hundred names of others hang', async () => {
    const { server } = await nameServer((family, name) => {
      if (name.startsWith('hang')) return 'silence';
      return family === 4 && name === 'llm.default.svc.cluster.local' ? ['10.0.0.1'] : 'nxdomain';
    });
    const lookup = lookupWithoutThread([server], files());
    const budget = new AbortController();
    for (let i = 0; i < 100; i += 1) lookup(`hang${i}`, budget.signal, () => undefined);
    const begun = performance.now();
    expect(await resolve(lookup, 'llm')).toEqual([{ address: '10.0.0.1', family: 4 }]);
    // One try of a name server takes longer.
    expectInTime(performance.now() - begun, 450);
    budget.abort();
  });

  test('of thousands of addresses are cut: each would be looked at and tried', async () => {
    const { server } = await nameServer((family) => (family === 4 ? Array(80).fill('10.0.0.1') : []));
    expect(await resolve(lookupWithoutThread([server], files()), 'wide.example')).toHaveLength(32);
  });
});

test.each<[why: string, nameServers: readonly string[] | null, read: () => Promise<HostNames>]>([
  ['files cannot be read', null, () => Promise.reject(new Error('EMFILE'))],
  ['files are refused in another way', null, () => Promise.reject('no error')],
  ['name servers are none', ['not an address'], async () => ({ hosts: new Map(), search: [] })],
])('a look-up whose %s fails, once, and nothing else does', async (_why, nameServers, read) => {
  const lookup = lookupWithoutThread(nameServers, { read });
  const told: (Error | null)[] = [];
  await new Promise<void>((resolve) => {
    lookup('models.example', new AbortController().signal, (error) => {
      told.push(error);
      resolve();
    });
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([expect.any(Error)]);
});

test('a caller that throws when it is told ends nothing', async () => {
  const read = async (): Promise<HostNames> => ({
    hosts: new Map([['models', [{ address: '10.0.0.1', family: 4 }]]]),
    search: [],
  });
  let calls = 0;
  lookupWithoutThread(null, { read })('models', new AbortController().signal, () => {
    calls += 1;
    throw new Error('a bug');
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toBe(1);
});
