import { cpus, release, totalmem } from 'node:os';
import { StageError } from '../stage/project.ts';
import type { Found } from './benchmark.ts';
import { goalRows } from './goals.ts';
import { LEAD_IN_MS, WARM_UP_REQUESTS } from './measure.ts';
import type { Measurement } from './micro.ts';
import type { Neighbours } from './neighbours.ts';
import { tellNeighbours } from './neighbours.ts';
import { CONNECTIONS, STREAMS, suites } from './suites.ts';
import {
  dutyTable,
  keptSlices,
  markdown,
  partsTable,
  postgresMicroseconds,
  processTable,
  telemetryTable,
  tlsTable,
} from './tables.ts';
import { ANTHROPIC, FLOOR, FLOOR_TLS, GATEWAY, starts, UNWATCHED } from './targets.ts';
import { EVENTS_PER_STREAM, HELD_STREAMS } from './workload.ts';

/** docs/performance.md: two programs write it, each its own part. */

const GIB = 2 ** 30;
const partsHeading = '\n## The parts\n';

interface Content extends Found {
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly neighbours: Neighbours;
}

/** What `npm run bench` measured; the parts are taken over from the page as it was. */
export function page({ turns, held, date, neighbours }: Content, before: string): string {
  const { kept, all } = keptSlices(turns);
  return `# Performance

\`npm run bench\` and \`npm run bench:micro\` wrote this page; its text is in \`test/harness/bench/page.ts\`. Only the ratios
bind: they compare processes that took turns on one machine within minutes. Milliseconds and microseconds are this
machine's.

## The gateway against bare forwarders

${dutyTable(turns, held)}

Measured on ${date}: ${machine()}. ${tellNeighbours(neighbours)} Of all tables ${kept} slices of
${all} were left undisturbed and count. For each request, which is one row, Postgres takes
${postgresMicroseconds(turns).toFixed(0)} µs of CPU on top.

## What was aimed at

The gateway has to stay within the first and should come down to the second; what costs CPU is by that of ${FLOOR}, traces by
that of the gateway.

${markdown(['measure', 'must', 'aim', 'found'], goalRows(turns, held))}

## With TLS to the vendor

As every real one has it, against a floor that speaks TLS too:

${tlsTable(turns)}

## What telemetry costs

Against the gateway with its defaults, which are metrics and the access line:

${telemetryTable(turns)}

## What more processes cost

The same load, its connections shared out among them, on the same core:

${processTable(turns)}
${partsOf(before) ?? parts('Not measured yet.')}
${explanation}`;
}

/** The page with another table of the parts. Throws StageError when it has no place for one. */
export function withParts(text: string, measurements: readonly Measurement[], date: string): string {
  const old = partsOf(text);
  if (old === null)
    throw new StageError('docs/performance.md has no section for the parts: npm run bench writes it.');
  return text.replace(old, () => parts(`${partsTable(measurements)}\n\nMeasured on ${date}: ${machine()}.`));
}

function partsOf(text: string): string | null {
  const start = text.indexOf(partsHeading);
  if (start < 0) return null;
  const end = text.indexOf('\n## ', start + partsHeading.length);
  return text.slice(start, end);
}

const parts = (body: string) => `${partsHeading}
The median time of one call, against one \`JSON.parse\` of what it is about (a request of 1 KB, or one streamed event),
taken just before it. \`npm run bench:micro\` measures these: day and machine are those named below the table.

${body}
`;

function machine(): string {
  const [first] = cpus();
  const memory = Math.round(totalmem() / GIB);
  return `Node ${process.versions.node}, ${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${memory} GiB, Linux ${release()}`;
}

const explanation = `## How to read it

- The first three columns of numbers are CPU time (user and system, all threads of the process) divided by that of the
  row that says 1: ${FLOOR}, ${FLOOR_TLS}, or a gateway with its defaults. Both were
  started and warmed up in turns, and take turns in slices of ${suites.json.ms} ms (paced: ${suites.paced.ms} ms), each after
  ${LEAD_IN_MS} ms of the same that are not counted; each slice is compared with those of the other just before and just
  after it, and left out where these two differ by more than a quarter: something else ran. Nobody else runs: a dozen
  others that idle would empty the caches. Where a JSON request has a goal, both are started ${starts} times, for their
  part of the slices each: two starts of one build differ by 0.04. The median of the slices, with its standard error,
  which the middle half of them tells.
  The load generator and the vendor share the other core with Postgres and speak over bare sockets: slower ones would
  let the target wait, and what waits works on fewer requests at a time, each of which costs more.
- **${FLOOR}** is the floor: Fastify with the body as bytes and \`Pool.dispatch\` of undici, whose handler writes to
  the raw response. **bare node:http** is the same without Fastify. Neither does any of a gateway's duties.
- **${GATEWAY}** is \`dist/main.js\` with its defaults and every duty: service key, opening the sealed provider key,
  validation, routing, reading usage and cost, the gateway block, one log row committed to Postgres before the answer
  ends, metrics, and the access line. From the cache: the answer, the row and the telemetry, without an upstream call.
- **${ANTHROPIC}**: a hundred events of its Messages API, each translated; the floor passes on OpenAI's.
- **${UNWATCHED}** is the same without the access line, and with metrics that count nothing: the product has no such
  switch, so \`test/harness/bench/without-metrics.ts\` is loaded into it. **metrics** has no access line. Traces go to a
  collector on this machine that throws them away; spans beyond the queue's limit are dropped, as they would be elsewhere.
  Auto-instrumentation is \`GW_OTEL_AUTO=1\`: spans of the queries to Postgres on top.
- **JSON request**: 1 KB of prompt, 1 KB of answer, ${CONNECTIONS} connections in a closed loop. **event**: one of the
  ${EVENTS_PER_STREAM} events of a stream, its share of the request included, ${STREAMS} streams at a time. Each is an HTTP
  chunk of about 220 bytes; in a *burst* the vendor sends all at once, so that many arrive in one read, *paced* one every
  ${suites.paced.pace.ms} ms.
- **added p50**: the median time of a JSON request on a single connection, less that of the vendor asked directly. For
  the gateway it has the commit of the log row in it.
- **first token**: the same up to the first event with text of a stream, which the vendor sends with its head, the rest a
  millisecond later. Without that commit. On a machine that sleeps between two requests each costs three times as much,
  of the floor too.
- **MiB per ${HELD_STREAMS.toLocaleString('en')} streams**: how much a fresh process grows while that many streams are open. One measurement.

## What it leaves out

TLS to the clients, the network, and durable storage: Postgres runs on the same cores and does not wait for a disk. The
vendor answers at once. The load generator, the vendor, Postgres and the target share the machine, so throughput would
say little and is not given, nor is what more processes on more cores would carry. CPU times are those of the scheduler.

## Run it again

\`\`\`sh
npm run bench                  # prints the tables and rewrites this page, in three quarters of an hour
npm run bench -- 2026-01-31    # with this date on the page instead of today's
npm run bench -- --quick       # a tenth of it, once: that it runs; the page stays as it is
npm run bench -- --guard       # only whether a JSON request and an event cost far more than they should
npm run bench:micro            # the parts, in less than a minute
\`\`\`

It needs Linux and nothing else: Node is found or fetched as for \`npm start\`, Postgres is the embedded one, everything
talks on 127.0.0.1. Each target is warmed up with ${WARM_UP_REQUESTS.toLocaleString('en')} requests, since V8 compiles the
hot path only after thousands, and on until a slice of each kind costs no less than the one before; it has the
last core to itself.
`;
