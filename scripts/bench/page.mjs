import { cpus, release, totalmem } from 'node:os';
import { HELD_STREAMS } from './workload.mjs';

const GIB = 2 ** 30;
/** The target that the others are measured against. */
export const FLOOR = 'bare Fastify';
/** The vendor itself, without anything between. */
export const DIRECT = 'direct';

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** CPU against the floor of the same round: the median, and in brackets the least and the most. */
function ratio(rounds, suite, name) {
  if (rounds[0][suite][name] === undefined) return '';
  const ratios = rounds.map((round) => round[suite][name].cpu / round[suite][FLOOR].cpu);
  if (name === FLOOR) return '1';
  const [least, middle, most] = [Math.min(...ratios), median(ratios), Math.max(...ratios)];
  return `${middle.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
}

function absolute(rounds, suite, name) {
  if (rounds[0][suite][name] === undefined) return '';
  const middle = median(rounds.map((round) => round[suite][name].cpu));
  return middle.toFixed(middle < 10 ? 1 : 0);
}

/** Milliseconds on top of the vendor's own, one request at a time. */
function addedLatency(rounds, name) {
  const { latency } = rounds[0];
  if (latency[name] === undefined) return '';
  const added = rounds.map((round) => round.latency[name].p50 - round.latency[DIRECT].p50);
  return median(added).toFixed(2);
}

/** The one table, as Markdown. */
export function resultTable(rounds, held) {
  const head = [
    'target',
    'JSON request',
    'event, burst',
    'event, paced',
    'CPU, µs: request / burst / paced',
    'added p50, ms',
    `MiB per ${HELD_STREAMS.toLocaleString('en')} streams`,
  ];
  const rows = Object.keys(rounds[0].json).map((name) => [
    name,
    ...['json', 'burst', 'paced'].map((suite) => ratio(rounds, suite, name)),
    ['json', 'burst', 'paced']
      .map((suite) => absolute(rounds, suite, name))
      .filter((text) => text !== '')
      .join(' / '),
    addedLatency(rounds, name),
    held[name]?.toFixed(0) ?? '',
  ]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function machine() {
  const [first] = cpus();
  return `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / GIB)} GiB, Linux ${release()}`;
}

/** How busy the machine was without us. */
function neighbours(foreignCores) {
  if (foreignCores < 0.2) return 'The machine was idle before and afterwards.';
  return `The machine was not idle: other programs used up to ${foreignCores.toFixed(1)} cores just before or afterwards.`;
}

/** docs/performance.md. */
export function page({ rounds, held, date, foreignCores }) {
  return `# Performance

\`npm run bench\` wrote this page; its text is in \`scripts/bench/page.mjs\`. Only the ratios bind: they compare
processes that took turns on one machine within minutes. Milliseconds and microseconds are this machine's.

${resultTable(rounds, held)}

Measured on ${date}: Node ${process.versions.node}, ${machine()}. ${rounds.length} rounds.
${neighbours(foreignCores)}

## How to read it

- The first three columns of numbers are CPU time (user and system, all threads of the process) divided by that of
  ${FLOOR} in the same round: the median of the rounds, the least and the most in brackets.
- **${FLOOR}** is the floor: Fastify with the body as bytes and \`Pool.dispatch\` of undici, whose handler writes to
  the raw response. **bare node:http** is the same without Fastify. Neither does any of a gateway's duties.
- **gateway** is \`dist/main.js\` with its defaults and every duty: service key, opening the sealed provider key,
  validation, routing, reading usage and cost, the gateway block, one log row committed to Postgres before the answer
  ends, metrics, and the access line. The rows below it change one thing each.
- **JSON request**: 1 KB of prompt, 1 KB of answer, 32 connections in a closed loop. **event**: one of the 100 events of
  a stream, 50 streams at a time. Each is an HTTP chunk of about 220 bytes; in a *burst* the vendor sends all at once, so
  that many arrive in one read, *paced* one every 10 ms.
- **added p50**: the median time of a JSON request on a single connection, less that of the vendor asked directly. For
  the gateway it has the commit of the log row in it.
- **MiB per ${HELD_STREAMS.toLocaleString('en')} streams**: how much a fresh process grows while that many streams are open. One measurement.

## What it leaves out

TLS on both sides, the network, and durable storage: Postgres runs on the same cores and does not wait for a disk. The
vendor answers at once. The load generator, the vendor, Postgres and the target share the machine, so throughput would
say little and is not given. CPU times come from a clock that ticks every 10 ms: 5 % of what the floor uses for its
paced events in one round, and less of everything else. A neighbour makes everything dearer for as long as it runs, so
wide brackets mean a busy machine.

## Run it again

\`\`\`sh
npm run bench                  # prints the table and rewrites this page, in less than four minutes
npm run bench -- 2026-01-31    # with this date on the page instead of today's
\`\`\`

It needs Linux and nothing else: Node is found or fetched as for \`npm start\`, Postgres is the embedded one, everything
talks on 127.0.0.1. Each target is warmed up with 20,000 requests, since V8 compiles the hot path only after thousands.
`;
}
