import type { KubeConfig, V1ConfigMap } from '@kubernetes/client-node';
import type { ReadTables, TablesListeners, TablesSource } from '../tables/last-good-tables.ts';
import { LastGoodTables, readTables, TablesError, unreadableTables } from '../tables/last-good-tables.ts';
import { reportFault } from './configmap-events.ts';
import type { ConnectedApi, FollowedConfigMap } from './configmap-follower.ts';
import { ConfigMapFollower } from './configmap-follower.ts';

/** Where the document is when no entry is named; any other name will do when it is the only one. */
const usualEntry = 'tables.yaml';
/** Edits in quick succession count once: reading a document takes milliseconds, in which no request is served. */
const settleMs = 50;
export interface ConfigMapTablesOptions extends TablesListeners, FollowedConfigMap {
  /** Where the document is, and nowhere else. */
  readonly entry?: string;
  readonly wallMs: () => number;
  /** For tests; the pod's own account otherwise. */
  readonly kubeConfig?: KubeConfig;
}

/** Loaded here only: the import costs most of a second and 80 MB, which mounted tables need not pay. */
async function connect(given: KubeConfig | undefined): Promise<ConnectedApi> {
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
  return unreadableTables(`the ConfigMap has no entry "${name}"`);
}

const gone = unreadableTables('the ConfigMap does not exist');

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
    tables.offer(unreadableTables(`the Kubernetes API does not give the ConfigMap: ${problem}`));
  };
  void follower.follow(first, newestOnly(take, closing.signal), miss);
  return {
    current: () => tables.current(),
    status: () => tables.status(),
    close: () => closing.abort(),
  };
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
