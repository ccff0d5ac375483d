import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ConfigurationOptions,
  CoreV1Api,
  KubeConfig,
  ObservableMiddleware,
  V1ConfigMap,
} from '@kubernetes/client-node';
import { TablesError } from '../tables/last-good-tables.ts';

/**
 * The API server ends the watch by itself; we list again, which also finds what a watch missed. Below the 30 s
 * without a byte after which the client gives one up as broken, as each is of a document that nobody edits.
 */
const watchSeconds = 25;
/** One list and one watch per round, and never more than about one request a second. */
const firstRetryMs = 1_000;
const longestRetryMs = 30_000;
/** An API server that takes a list and stays silent counts as away; the client would wait for five minutes. */
const listLimitMs = 10_000;
/**
 * An API server that gives no list for so long is told of as tables that cannot be read: rights may have gone, and
 * nobody would learn that edits do not come. A control plane that is renewed takes less.
 */
const longestAwayMs = 60_000;
/** How long the first load may take before the start fails. */
const startTimeoutMs = 60_000;

export interface ConnectedApi {
  readonly core: CoreV1Api;
  readonly config: KubeConfig;
  readonly client: typeof import('@kubernetes/client-node');
}

export interface FollowedConfigMap {
  readonly namespace: string;
  readonly name: string;
  /** At the start, of each try that has failed: why. */
  readonly onWaiting?: (problem: string) => void;
  /** For tests. */
  readonly awayMs?: number;
}

/** What the client throws, in one line. */
const problemOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);

/** Options of one call that ends with the signal. */
function heeding(
  { Observable }: ConnectedApi['client'],
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

/** List, then watch from there; on any end or error list again, later and later. */
export class ConfigMapFollower {
  readonly #api: ConnectedApi;
  readonly #options: FollowedConfigMap;
  readonly #signal: AbortSignal;
  /** Of the watch that is open now. */
  #watching: AbortController | null = null;

  constructor(api: ConnectedApi, options: FollowedConfigMap, signal: AbortSignal) {
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
