/** What a rate of requests needs, from figures of docs/performance.md and docs/sizing.md. Pure. */

/** CPU, in µs, of the gateway with TLS to the vendor: those of docs/performance.md, which test/docs/measured-figures.test.ts compares. */
export const gatewayMicros = { request: 79, event: 18 } as const;
/** How much of its core a pod should use. */
export const podUse = 0.6;
/** Fewer are no protection against the loss of one. */
export const fewestPods = 2;
/** Of a streamed answer, each alone in its read. */
const eventsPerStream = 200;
/** CPU of Postgres, in µs a row, by the rows that share a commit (docs/sizing.md, 1,000 users, 2026-11-22), and the flush. */
const rowMicros: readonly (readonly [rows: number, micros: number])[] = [
  [1, 191],
  [8, 87],
  [32, 51],
  [128, 41],
];
const flushMicros = 150;
/** How long a commit takes in which others gather, in ms: a flush of a disk in the same place. */
const commitMs = 2;
/** Bytes of write-ahead log a row (docs/sizing.md). */
const walBytes = 1_400;
/** Bytes that a row takes for good, its indexes included (docs/scale.md). */
const rowBytes = 1_313;
/** Connections of a pod to Postgres in `values-ha.yaml`, and those beside pods. */
const podConnections = 13;
const otherConnections = 3;

export interface Needs {
  /** For JSON answers. */
  readonly pods: number;
  /** Where every answer is a stream. */
  readonly streamingPods: number;
  readonly connections: number;
  readonly postgresCores: number;
  readonly walMegabytes: number;
  readonly gigabytesPerDay: number;
}

function podsOf(perSecond: number, micros: number): number {
  return Math.max(fewestPods, Math.ceil((perSecond * micros) / (podUse * 1e6)));
}

/** Rows that share a commit: those that come to one pod while its commit before is under way. */
function batchOf(perSecond: number, pods: number): number {
  return Math.max(1, ((perSecond / pods) * commitMs) / 1000);
}

export function needsOf(perSecond: number): Needs {
  const pods = podsOf(perSecond, gatewayMicros.request);
  const batch = batchOf(perSecond, pods);
  const [, micros] = rowMicros.findLast(([rows]) => rows <= batch) ?? [1, 191];
  return {
    pods,
    streamingPods: podsOf(perSecond, gatewayMicros.request + eventsPerStream * gatewayMicros.event),
    connections: pods * podConnections + otherConnections,
    postgresCores: (perSecond * (micros + flushMicros / batch)) / 1e6,
    walMegabytes: (perSecond * walBytes) / 1e6,
    gigabytesPerDay: (perSecond * 86_400 * rowBytes) / 1e9,
  };
}

/** A number as the table of docs/scale.md shows it. */
function shown(value: number): string {
  if (value >= 10) return Math.round(value).toLocaleString('en-US');
  return value >= 1 ? value.toFixed(1) : String(Number(value.toPrecision(1)));
}

/** The row of docs/scale.md, without what is said of its first wall. */
export function capacityRow(perSecond: number): string {
  const { pods, streamingPods, connections, postgresCores, walMegabytes, gigabytesPerDay } =
    needsOf(perSecond);
  const cells = [perSecond.toLocaleString('en-US'), pods, streamingPods.toLocaleString('en-US'), connections];
  return `| ${[...cells, ...[postgresCores, walMegabytes, gigabytesPerDay].map(shown)].join(' | ')} |`;
}
