import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Loaded into the gateway before its own code (`node --import`); otherwise the process is the product as built. It
 * measures the longest turn of the event loop in CPU time of the main thread, which a busy machine does not stretch,
 * and answers questions over IPC. A question that asks for it collects garbage first: what is still there then is held.
 */
export interface WitnessReport {
  readonly id: number;
  /** CPU time of the longest turn of the loop since the last report. */
  readonly longestTurnCpuMs: number;
  /** The same by the wall clock: as much the machine's fault as the process's. */
  readonly longestTurnWallMs: number;
  readonly rssBytes: number;
  readonly heapUsedBytes: number;
  readonly externalBytes: number;
  /** Ports of open sockets, seen from the gateway. */
  readonly sockets: readonly { readonly localPort: number; readonly remotePort: number }[];
  /** Exchanges share one that keeps nothing alive: what is left of them is in `gw_inflight_attempts`. */
  readonly timers: number;
  /** Kinds of everything else that keeps the loop alive, with their counts. */
  readonly resources: Readonly<Record<string, number>>;
}

export interface WitnessQuestion {
  readonly id: number;
  readonly collect: boolean;
}

/** The loop is looked at this often. */
const tickMs = 10;

interface SocketLike {
  readonly localPort?: number;
  readonly remotePort?: number;
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
};

let lastCpuMs = cpuMs();
let lastWallMs = performance.now();
let longestTurnCpuMs = 0;
let longestTurnWallMs = 0;

function tick(): void {
  const nowCpuMs = cpuMs();
  const nowWallMs = performance.now();
  longestTurnCpuMs = Math.max(longestTurnCpuMs, nowCpuMs - lastCpuMs);
  longestTurnWallMs = Math.max(longestTurnWallMs, nowWallMs - lastWallMs - tickMs);
  lastCpuMs = nowCpuMs;
  lastWallMs = nowWallMs;
}

function forget(): void {
  longestTurnCpuMs = 0;
  longestTurnWallMs = 0;
  lastCpuMs = cpuMs();
  lastWallMs = performance.now();
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as (options: Readonly<Record<string, string>>) => void;

function report({ id, collect }: WitnessQuestion): WitnessReport {
  tick();
  const turn = { longestTurnCpuMs, longestTurnWallMs };
  if (collect) collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const { rss, heapUsed, external } = process.memoryUsage();
  const counts = Object.groupBy(process.getActiveResourcesInfo(), (kind) => kind);
  const resources = Object.fromEntries(Object.entries(counts).map(([kind, all]) => [kind, all?.length ?? 0]));
  const { _getActiveHandles: handles } = process as typeof process & { _getActiveHandles(): SocketLike[] };
  const sockets = handles
    .call(process)
    .filter(({ remotePort }) => remotePort !== undefined)
    .map(({ localPort = 0, remotePort = 0 }) => ({ localPort, remotePort }));
  forget();
  return {
    id,
    ...turn,
    rssBytes: rss,
    heapUsedBytes: heapUsed,
    externalBytes: external,
    sockets,
    timers: resources['Timeout'] ?? 0,
    resources,
  };
}

process.on('message', (question) => process.send?.(report(question as WitnessQuestion)));
// The channel must not keep a gateway alive that has drained.
process.channel?.unref();
setInterval(tick, tickMs).unref();
