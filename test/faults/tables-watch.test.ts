/** The watch of a ConfigMap through everything that an API server and the way to it can do. */
import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, test, vi } from 'vitest';
import { watchTablesConfigMap } from '../../src/adapters/kubernetes/configmap-tables.ts';
import type { TablesFault, TablesSource } from '../../src/adapters/tables/last-good-tables.ts';
import { tables as tablesInput } from '../harness/gateway/tables.ts';
import type { Behaviour } from './tables-api.ts';
import { configMap, FakeTablesApi } from './tables-api.ts';

/** A try follows a failure after one second, then two, four and so on up to thirty, each less up to a half. */
const limit = { timeout: 45_000, interval: 20 };

const document = (model: string): string =>
  JSON.stringify(tablesInput({ tiers: { ...tablesInput().tiers, cheap: [{ provider: 'sarvam', model }] } }));

/** An API server and a follower of its ConfigMap. */
class World {
  readonly api = new FakeTablesApi(document('first'));
  readonly problems: TablesFault[] = [];
  readonly waits: string[] = [];
  recoveries = 0;
  source: TablesSource | undefined;

  /** Resolves with the source once the first document is in use. */
  async follow(more: { readonly awayMs?: number } = {}): Promise<TablesSource> {
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromString(this.api.kubeconfig());
    const onProblem = (problem: TablesFault) => void this.problems.push(problem);
    this.source = await watchTablesConfigMap({
      ...{ ...configMap, kubeConfig, wallMs: Date.now, onProblem, ...more },
      onWaiting: (problem) => void this.waits.push(problem),
      onRecovered: () => {
        this.recoveries += 1;
      },
    });
    return this.source;
  }

  async followAndWatch(more: { readonly awayMs?: number } = {}): Promise<TablesSource> {
    const source = await this.follow(more);
    await this.untilWatched();
    return source;
  }

  untilWatched(): Promise<void> {
    return vi.waitFor(() => expect(this.api.openWatches).toBe(1), limit);
  }

  untilModel(model: string): Promise<void> {
    return vi.waitFor(() => expect(this.source?.current().tier('cheap')[0]?.model).toBe(model), limit);
  }

  async close(): Promise<void> {
    this.source?.close();
    await this.api.stop();
  }
}

async function inWorld(run: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  await world.api.start();
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

// All at once: most of their time is spent waiting for the next try.
describe.concurrent('the watch', () => {
  test('asks for nothing but its own ConfigMap, and watches from where it listed', () =>
    inWorld(async (world) => {
      await world.followAndWatch();
      const { requests } = world.api;
      expect(requests.map(({ kind, fieldSelector }) => [kind, fieldSelector])).toEqual([
        ['list', 'metadata.name=tables'],
        ['watch', 'metadata.name=tables'],
      ]);
      expect(requests[1]?.resourceVersion).toBe('1');
    }));

  test('takes each edit into use, and a burst of them as one', () =>
    inWorld(async (world) => {
      const source = await world.followAndWatch();
      world.api.edit(document('second'));
      await world.untilModel('second');
      const { generation } = source.status();
      for (let index = 1; index <= 100; index += 1) world.api.edit(document(`of-a-burst-${index}`));
      await world.untilModel('of-a-burst-100');
      expect(source.status().generation).toBeLessThan(generation + 5);
    }));

  test.each(['close', 'expired', 'reset'] as const)(
    'finds an edit that it missed after an end by %s',
    (how) =>
      inWorld(async (world) => {
        await world.followAndWatch();
        world.api.endWatches(how);
        world.api.edit(document('missed'));
        await world.untilModel('missed');
        expect(world.problems).toEqual([]);
      }),
  );

  test('finds an edit that it missed while the API server was away', () =>
    inWorld(async (world) => {
      await world.followAndWatch();
      await world.api.stop();
      world.api.edit(document('missed'));
      await world.api.start();
      await world.untilModel('missed');
      await world.untilWatched();
      world.api.edit(document('after'));
      await world.untilModel('after');
    }));

  test.each<[string, Behaviour, Behaviour]>([
    ['403, as while the API server loads its rights', 403, 403],
    ['410 to every watch', 'serve', 410],
    ['500 to every list', 500, 'serve'],
    ['a reset of every connection', 'reset', 'reset'],
  ])(
    'bears %s, asks less and less often, and gets over it',
    (_what, list, watch) =>
      inWorld(async (world) => {
        const { api } = world;
        const source = await world.followAndWatch();
        const { hash } = source.status();
        const before = api.requests.length;
        api.behaviour = { list, watch };
        api.endWatches('close');
        const failing = list === 'serve' ? 'watch' : 'list';
        const failed = () => api.requests.slice(before).filter(({ kind }) => kind === failing);
        await vi.waitFor(() => expect(failed().length).toBeGreaterThanOrEqual(3), limit);
        const [first, second, third] = failed().map(({ atMs }) => atMs) as [number, number, number];
        expect(second - first).toBeGreaterThan(900);
        expect(third - second).toBeGreaterThan(1_900);
        expect(source.status()).toMatchObject({ hash, lastReloadOk: true });
        api.behaviour = { list: 'serve', watch: 'serve' };
        api.edit(document('after'));
        await world.untilModel('after');
      }),
    60_000,
  );

  test('tells of an API that gives no list for long, and when it does again', () =>
    inWorld(async (world) => {
      const { api, problems } = world;
      const source = await world.followAndWatch({ awayMs: 1 });
      api.behaviour = { list: 403, watch: 403 };
      api.endWatches('close');
      await vi.waitFor(() => expect(source.status().lastReloadOk).toBe(false), limit);
      expect(source.status().lastProblem).toMatch(/^the Kubernetes API does not give the ConfigMap: .*403/);
      expect(source.current().tier('cheap')[0]?.model).toBe('first');
      api.behaviour = { list: 'serve', watch: 'serve' };
      await vi.waitFor(() => expect(source.status().lastReloadOk).toBe(true), limit);
      expect([problems.length, world.recoveries]).toEqual([1, 1]);
      await world.untilWatched();
      api.edit(document('after'));
      await world.untilModel('after');
    }));

  test(
    'does not wait for an API server that takes a list and stays silent',
    () =>
      inWorld(async (world) => {
        const { api } = world;
        await world.followAndWatch();
        api.behaviour = { list: 'hang', watch: 'serve' };
        api.endWatches('close');
        await vi.waitFor(() => expect(api.count('list')).toBe(2), limit);
        api.behaviour = { list: 'serve', watch: 'serve' };
        api.edit(document('after'));
        await world.untilModel('after');
      }),
    60_000,
  );

  test('refuses a document that cannot be used with one Event and one complaint', () =>
    inWorld(async (world) => {
      const { api, problems } = world;
      const source = await world.followAndWatch();
      const { hash } = source.status();
      api.edit('tiers: {}');
      await vi.waitFor(() => expect(api.count('event')).toBe(1), limit);
      api.edit('tiers: {}  # again');
      api.endWatches('close');
      await vi.waitFor(() => expect(api.count('watch')).toBe(2), limit);
      expect(problems).toHaveLength(1);
      expect(api.requests.find(({ kind }) => kind === 'event')?.body?.message).toContain('tiers.cheap');
      expect(source.status()).toMatchObject({ hash, lastReloadOk: false });
      api.edit(document('mended'));
      await world.untilModel('mended');
      expect(source.status()).toMatchObject({ lastReloadOk: true, lastProblem: null });
    }));

  test('stops the start when the first document cannot be used, with an Event', () =>
    inWorld(async (world) => {
      world.api.edit('tiers: {}');
      await expect(world.follow()).rejects.toThrow('tiers.cheap');
      expect(world.api.count('event')).toBe(1);
    }));

  test('keeps the last good tables when the ConfigMap is deleted, until it is there again', () =>
    inWorld(async (world) => {
      const source = await world.followAndWatch();
      world.api.edit(null);
      await vi.waitFor(() => expect(source.status().lastReloadOk).toBe(false), limit);
      expect(source.status().lastProblem).toBe('the ConfigMap does not exist');
      expect(source.current().tier('cheap')[0]?.model).toBe('first');
      world.api.edit(document('again'));
      await world.untilModel('again');
      expect(source.status().lastReloadOk).toBe(true);
    }));

  test('waits at the start for a ConfigMap that comes late', () =>
    inWorld(async (world) => {
      world.api.edit(null);
      const starting = world.follow();
      await vi.waitFor(() => expect(world.api.count('list')).toBe(2), limit);
      expect(world.waits[0]).toBe('it does not exist');
      world.api.edit(document('late'));
      expect((await starting).current().tier('cheap')[0]?.model).toBe('late');
    }));

  test('asks for nothing any more once it is closed', () =>
    inWorld(async (world) => {
      const source = await world.followAndWatch();
      source.close();
      await vi.waitFor(() => expect(world.api.openWatches).toBe(0), limit);
      world.api.edit(document('too late'));
      expect(world.api.requests).toHaveLength(2);
      expect(source.current().tier('cheap')[0]?.model).toBe('first');
    }));
});
