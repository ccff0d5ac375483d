import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ConfigurationOptions,
  CoreV1Api,
  KubeConfig,
  ObservableMiddleware,
  V1ConfigMap,
} from '@kubernetes/client-node';
import type { ReadTables, TablesListeners, TablesSource } from '../tables/last-good-tables.ts';
import { LastGoodTables, readTables, TablesError } from '../tables/last-good-tables.ts';
import { reportFault } from './configmap-events.ts';

/** Where the document is when no entry is named; any other name will do when it is the only one. */
const usualEntry = 'tables.yaml';
/**
 * The API server ends the watch by itself; we list again, which also finds what a watch missed. Below the 30 s
 * without a byte after which the client gives one up as broken, as each is of a document that nobody edits.
 */
const watchSeconds = 25;
/** One list and one watch per round, and never more than about one request a second. */
const firstRetryMs = 1_000;
const longestRetryMs = 30_000;
/** Edits in quick succession count once: reading a document takes milliseconds, in which no request is served. */
const settleMs = 50;
/** An API server that takes a list and stays silent counts as away; the client would wait for five minutes. */
const listLimitMs = 10_000;
/**
 * An API server that gives no list for so long is told of as tables that cannot be read: rights may have gone, and
 * nobody would learn that edits do not come. A control plane that is renewed takes less.
 */
const longestAwayMs = 60_000;
/** How long the first load may take before the start fails. */
const startTimeoutMs = 60_000;

export interface ConfigMapTablesOptions extends TablesListeners {
  readonly namespace: string;
  readonly name: string;
  /** Where the document is, and nowhere else. */
  readonly entry?: string;
  readonly wallMs: () => number;
  /** At the start, of each try that has failed: why. */
  readonly onWaiting?: (problem: string) => void;
  /** For tests. */
  readonly awayMs?: number;
  /** For tests; the pod's own account otherwise. */
  readonly kubeConfig?: KubeConfig;
}

interface Api {
  readonly core: CoreV1Api;
  readonly config: KubeConfig;
  readonly client: typeof import('@kubernetes/client-node');
}

/** Loaded here only: the import costs most of a second and 80 MB, which mounted tables need not pay. */
async function connect(given: KubeConfig | undefined): Promise<Api> {
  const client = await import('@kubernetes/client-node');
  const config = given ?? new client.KubeConfig();
  if (given === undefined) config.loadFromDefault();
  return { core: config.makeApiClient(client.CoreV1Api), config, client };
}

function readConfigMap(configMap: V1ConfigMap, entry: string | undefined): ReadTables {
  const data = new Map(Object.entries(configMap.data ?? {}));
  const [only] = data.size === 1 && entry === undefined ? data.values() : [];
  const name = entry ?? usualEntry;
  const text = data.get(name) ?? only;
  if (text !== undefined) return readTables(text);
  return unreadable(`the ConfigMap has no entry "${name}"`);
}

const unreadable = (message: string): ReadTables => ({ ok: false, fault: { kind: 'unreadable', message } });

const gone = unreadable('the ConfigMap does not exist');

/** What the client throws, in one line. */
const problemOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);

/**
 * Follows one named ConfigMap through the Kubernetes API with the least rights that suffice (list and watch
 * with a field selector). Rejects with TablesError when the first document is bad or cannot be had; later
 * the last good one stays through bad edits, deletion and outages of the API.
 */
export async function watchTablesConfigMap(options: ConfigMapTablesOptions): Promise<TablesSource> {
  const api = await connect(options.kubeConfig);
  const closing = new AbortController();
  const follower = new ConfigMapFollower(api, options, closing.signal);
  const first = await follower.firstConfigMap();
  const read = readConfigMap(first, options.entry);
  if (!read.ok) {
    await reportFault(api.core, first, read.fault.message, options.wallMs());
    throw new TablesError(`ConfigMap ${options.namespace}/${options.name}: ${read.fault.message}`);
  }
  const tables = new LastGoodTables(read, options, options.wallMs);
  let takenVersion = first.metadata?.resourceVersion;
  const take = (configMap: V1ConfigMap | null): void => {
    const version = configMap?.metadata?.resourceVersion;
    // Each new list brings what is in use already.
    if (version !== undefined && version === takenVersion) return;
    takenVersion = version;
    const next = configMap === null ? gone : readConfigMap(configMap, options.entry);
    const known = tables.status().lastProblem;
    tables.offer(next);
    if (!next.ok && next.fault.message !== known) {
      void reportFault(api.core, configMap ?? first, next.fault.message, options.wallMs());
    }
  };
  const miss = (problem: string): void => {
    // What is in use has to be offered again, or the fault would stay.
    takenVersion = undefined;
    tables.offer(unreadable(`the Kubernetes API does not give the ConfigMap: ${problem}`));
  };
  void follower.follow(first, newestOnly(take, closing.signal), miss);
  return {
    current: () => tables.current(),
    status: () => tables.status(),
    close: () => closing.abort(),
  };
}

/** Options of one call that ends with the signal. */
function heeding(
  { Observable }: Api['client'],
  signal: AbortSignal,
): ConfigurationOptions<ObservableMiddleware> {
  const middleware: ObservableMiddleware = {
    pre: (request) => {
      request.setSignal(signal);
      return new Observable(Promise.resolve(request));
    },
    post: (response) => new Observable(Promise.resolve(response)),
  };
  return { middleware: [middleware], middlewareMergeStrategy: 'append' };
}

/** Hands on what came last once `settleMs` have passed since the first of a burst. */
function newestOnly<T>(take: (value: T) => void, signal: AbortSignal): (value: T) => void {
  let newest: { readonly value: T } | null = null;
  return (value) => {
    const isBurst = newest !== null;
    newest = { value };
    if (isBurst) return;
    setTimeout(() => {
      const { value: last } = newest ?? { value };
      newest = null;
      if (!signal.aborted) take(last);
    }, settleMs).unref();
  };
}

/** List, then watch from there; on any end or error list again, later and later. */
class ConfigMapFollower {
  readonly #api: Api;
  readonly #options: ConfigMapTablesOptions;
  readonly #signal: AbortSignal;
  /** Of the watch that is open now. */
  #watching: AbortController | null = null;

  constructor(api: Api, options: ConfigMapTablesOptions, signal: AbortSignal) {
    this.#api = api;
    this.#options = options;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#watching?.abort());
  }

  async firstConfigMap(): Promise<V1ConfigMap> {
    const { namespace, name } = this.#options;
    const dueMs = performance.now() + startTimeoutMs;
    for (let delayMs = firstRetryMs; ; delayMs = Math.min(delayMs * 2, longestRetryMs)) {
      let problem = 'it does not exist';
      try {
        const { configMap } = await this.#list();
        if (configMap !== null) return configMap;
      } catch (error) {
        problem = problemOf(error);
      }
      this.#options.onWaiting?.(problem);
      if (performance.now() + delayMs > dueMs) {
        throw new TablesError(`ConfigMap ${namespace}/${name} cannot be read: ${problem}`);
      }
      await sleep(delayMs, undefined, { signal: this.#signal });
    }
  }

  async follow(
    first: V1ConfigMap,
    onChange: (configMap: V1ConfigMap | null) => void,
    onMissed: (problem: string) => void,
  ): Promise<void> {
    const { awayMs = longestAwayMs } = this.#options;
    let failingSinceMs: number | null = null;
    let version = first.metadata?.resourceVersion;
    let delayMs = firstRetryMs;
    while (!this.#signal.aborted) {
      // A watch that lived ended in the ordinary way; one that never did (410, 403 while the API server
      // warms up, refused) makes the next try wait longer.
      const lived = version !== undefined && (await this.#watch(version, onChange));
      delayMs = lived ? firstRetryMs : Math.min(delayMs * 2, longestRetryMs);
      try {
        await sleep(delayMs * (0.5 + Math.random() / 2), undefined, { signal: this.#signal });
        const listed = await this.#list();
        version = listed.version;
        failingSinceMs = null;
        onChange(listed.configMap);
      } catch (error) {
        version = undefined;
        failingSinceMs ??= performance.now();
        const isAway = performance.now() - failingSinceMs >= awayMs;
        if (isAway && !this.#signal.aborted) onMissed(problemOf(error));
      }
    }
  }

  async #list(): Promise<{ configMap: V1ConfigMap | null; version: string | undefined }> {
    const { namespace, name } = this.#options;
    const limit = AbortSignal.timeout(listLimitMs);
    const heeded = heeding(this.#api.client, AbortSignal.any([this.#signal, limit]));
    const query = { namespace, fieldSelector: `metadata.name=${name}` };
    const list = await this.#api.core.listNamespacedConfigMap(query, heeded).catch((error: unknown) => {
      throw limit.aborted ? new Error('the Kubernetes API does not answer') : error;
    });
    return { configMap: list.items[0] ?? null, version: list.metadata?.resourceVersion };
  }

  /** Resolves when the watch has ended; true when it had delivered anything or lasted. */
  async #watch(version: string, onChange: (configMap: V1ConfigMap | null) => void): Promise<boolean> {
    const { namespace, name } = this.#options;
    const startedAtMs = performance.now();
    let delivered = false;
    await new Promise<void>((resolve) => {
      const parameters = {
        fieldSelector: `metadata.name=${name}`,
        resourceVersion: version,
        timeoutSeconds: watchSeconds,
      };
      const onEvent = (phase: string, object: V1ConfigMap): void => {
        if (phase === 'ERROR') return;
        delivered = true;
        onChange(phase === 'DELETED' ? null : object);
      };
      const watch = new this.#api.client.Watch(this.#api.config);
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      watch
        .watch(path, parameters, onEvent, () => resolve())
        .then(
          (controller) => {
            this.#watching = controller;
            if (this.#signal.aborted) controller.abort();
          },
          () => resolve(),
        );
    });
    return delivered || performance.now() - startedAtMs > firstRetryMs;
  }
}
