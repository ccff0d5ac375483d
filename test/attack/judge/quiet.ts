import { httpClient } from '../../harness/gateway/http-client.ts';
import type { WitnessReport } from '../witness.ts';
import type { World } from '../world.ts';

/** Everything that a case may occupy is let go within this time: the longest request, lingering and a look around. */
const quietLimitMs = 12_000;
const pollMs = 50;
/** Memory is looked at so many times; what a worker thread frees follows a little later, and late on a busy machine. */
const memoryLooks = 12;
const memoryPauseMs = 250;
const mostGrowthBytes = 32 * 1024 * 1024;

/** Gauges that are zero when nobody is being served; what waits on a timer it shares with others shows nowhere else. */
const idleGauges =
  /^(gw_inflight_\w+|gw_stream_buffered_bytes|gw_\w*body\w*_bytes|gw_log_queue_depth|gw_log_spool_bytes|gw_log_oldest_row_age_seconds|gw_pressure_ratio\{resource="(?:body|answer)_bytes"[^}]*\}|gw_upstream_connections\{[^}]*state="(?:active|waiting)"[^}]*\})$/;
/** Of the same shape, but no amounts of use. */
const noGauges = /_limit_bytes|_max_bytes/;

export interface Baseline {
  readonly rssBytes: number;
  /** In the heap, and in Buffers outside it. */
  readonly heldBytes: number;
  readonly timers: number;
  /** Connections that this process keeps for its own questions. */
  readonly clientSockets: number;
}

/** Before anything is known, no more is asked than that vendors are let go. */
const nothingKnown: Baseline = { rssBytes: 0, heldBytes: 0, timers: 100, clientSockets: 100 };

export interface QuietFacts {
  readonly problems: readonly string[];
  /** Memory that is not held by anything we know of, and is not back either. */
  readonly growth: string | null;
  readonly report: WitnessReport;
}

async function busyGauges(world: World): Promise<string[]> {
  const { text } = await httpClient(world.gateway().adminUrl).get('/metrics');
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#') && !line.endsWith(' 0'))
    .filter((line) => {
      const name = line.slice(0, line.lastIndexOf(' '));
      return idleGauges.test(name) && !noGauges.test(name);
    });
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function clientSockets(world: World, { sockets }: WitnessReport): number {
  const own = portOf(world.gateway().url);
  return sockets.filter(({ localPort }) => localPort === own).length;
}

/** What a report shows beyond the baseline. */
function leftOver(world: World, report: WitnessReport, baseline: Baseline): string[] {
  const clients = clientSockets(world, report) - baseline.clientSockets;
  const upstream = report.sockets.filter(({ remotePort }) => remotePort === world.vendor.port).length;
  const timers = report.timers - baseline.timers;
  return [
    ...(clients > 0 ? [`${clients} sockets of clients`] : []),
    ...(upstream > 0 ? [`${upstream} sockets to vendors`] : []),
    ...(timers > 0 ? [`${timers} timers`] : []),
  ];
}

async function until(find: () => Promise<string[]>, limitMs: number): Promise<string[]> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await find();
    if (found.length === 0 || performance.now() > deadline) return found;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;

/** Waits until the gateway is as it was before the batch, and says what is not. */
export async function untilQuiet(world: World, baseline: Baseline | null): Promise<QuietFacts> {
  const problems: string[] = [];
  const first = await world.witness().ask();
  problems.push(...(await until(() => busyGauges(world), quietLimitMs)).map((line) => `left over: ${line}`));
  // Idle sockets to a vendor are kept on purpose; a vendor that closes them leaves those that are held.
  world.vendor.clear();
  const left = async (): Promise<string[]> =>
    leftOver(world, await world.witness().ask(), baseline ?? nothingKnown);
  problems.push(...(await until(left, quietLimitMs)).map((text) => `left over: ${text}`));
  const report = await settledMemory(world, baseline);
  const before = baseline ?? {
    ...nothingKnown,
    rssBytes: Number.POSITIVE_INFINITY,
    heldBytes: Number.POSITIVE_INFINITY,
  };
  const held = report.heapUsedBytes + report.externalBytes;
  if (held > before.heldBytes + mostGrowthBytes)
    problems.push(`holds ${mib(held)} after ${mib(before.heldBytes)}`);
  const grown = report.rssBytes > before.rssBytes + mostGrowthBytes;
  const growth = grown
    ? `resident ${mib(report.rssBytes)} after ${mib(before.rssBytes)} (heap ${mib(report.heapUsedBytes)}, outside it ${mib(report.externalBytes)})`
    : null;
  return { problems, growth, report: { ...report, ...turnOf(first) } };
}

const turnOf = ({ longestTurnCpuMs, longestTurnWallMs }: WitnessReport) => ({
  longestTurnCpuMs,
  longestTurnWallMs,
});

async function settledMemory(world: World, baseline: Baseline | null): Promise<WitnessReport> {
  let report = await world.witness().ask(true);
  for (let looks = 1; looks < memoryLooks; looks += 1) {
    if (baseline !== null && report.rssBytes <= baseline.rssBytes + mostGrowthBytes) break;
    await new Promise((resolve) => setTimeout(resolve, memoryPauseMs));
    report = await world.witness().ask(true);
  }
  return report;
}

/** How the gateway is when nobody has attacked it yet. */
export async function baselineOf(world: World): Promise<Baseline> {
  const { report } = await untilQuiet(world, null);
  const { rssBytes, heapUsedBytes, externalBytes, timers } = report;
  return {
    rssBytes,
    heldBytes: heapUsedBytes + externalBytes,
    timers,
    clientSockets: clientSockets(world, report),
  };
}
