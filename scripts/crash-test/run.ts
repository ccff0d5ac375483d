import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { rowsSince } from './account.ts';
import type { Answer, Gateway } from './client.ts';
import { send } from './client.ts';
import type { Fault } from './faults.ts';
import { faults, refusalBody } from './faults.ts';
import type { Judgement, Verdict } from './judge.ts';
import { fail, judge } from './judge.ts';
import type { CrashVendor } from './vendor.ts';
import { prompt } from './vendor.ts';

/** One row of the table. */
export interface Result {
  readonly id: string;
  readonly fault: string;
  readonly required: string;
  readonly happened: string;
  readonly verdict: Verdict;
}

export interface Run {
  readonly gateway: Gateway;
  readonly vendor: CrashVendor;
  /** Labels of the self_hosted keys that lead to the vendor, and to a port where nobody listens. */
  readonly labels: { readonly vendor: string; readonly nobody: string };
  /** How long the deployment lets an open stream be silent (`timeouts.stream_idle_seconds` of its tables). */
  readonly idleSeconds: number;
}

/** X-Gateway-Timeout of every request: long enough for a busy machine, short enough to be waited for. */
export const usualTimeoutSeconds = 2;
/** Beyond the limits of the gateway, for the way there and back. */
const slackMs = 5_000;
/** Big answers need longer to be refused. */
const largeTimeoutSeconds = 30;
/** Faults at once. */
const workers = 4;
const rowsLimitMs = 10_000;
const rowsPollMs = 250;
/** Requests of a flapping vendor: refused, then served. */
const flaps = 3;
/** The gateway's clock stamps its rows, and need not agree with ours: rows are told apart by their tag. */
const clockDifferenceMs = 300_000;

export function sendChat(
  gateway: Gateway,
  nonce: string,
  ask: { model: string; override?: string; stream: boolean; timeoutSeconds: number; limitMs: number },
): Promise<Answer> {
  return send(gateway, '/v1/chat/completions', {
    headers: {
      'x-gateway-timeout': String(ask.timeoutSeconds),
      ...(ask.override === undefined ? {} : { 'x-gateway-override-model': ask.override }),
    },
    body: { model: ask.model, stream: ask.stream, messages: [{ role: 'user', content: prompt(nonce) }] },
    limitMs: ask.limitMs,
  });
}

/** Both limits of one fault. */
export function limitsOf(fault: Fault, idleSeconds: number): { timeoutSeconds: number; limitMs: number } {
  const timeoutSeconds = fault.id === 'oversized' ? largeTimeoutSeconds : usualTimeoutSeconds;
  const waitSeconds = fault.waitsForIdleLimit ? timeoutSeconds + idleSeconds : timeoutSeconds;
  return { timeoutSeconds, limitMs: waitSeconds * 1000 + slackMs };
}

/** `work` on each item, a few at a time, those that wait longest first; results in the order of the items. */
export async function eachFault(
  chosen: readonly Fault[],
  work: (fault: Fault) => Promise<Result>,
): Promise<Result[]> {
  const results = new Map<Fault, Result>();
  const queue = [...chosen].sort(
    (a, b) => Number(b.waitsForIdleLimit ?? 0) - Number(a.waitsForIdleLimit ?? 0),
  );
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      results.set(next, await work(next));
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return chosen.flatMap((fault) => results.get(fault) ?? []);
}

/** The faults by override: one vendor, no fallback. Rows of the log are compared with what the client saw. */
export async function runOverride(run: Run): Promise<Result[]> {
  const since = new Date(Date.now() - clockDifferenceMs);
  const tag = randomUUID().slice(0, 8);
  const found = await eachFault(faults, (fault) => playOverride(run, fault, `${fault.id}-${tag}`));
  const flapped = await playFlapping(run, `flapping-${tag}`);
  const alive = await playHealthy(run, `healthy-${tag}`);
  return withRows(run.gateway, since, tag, [...found, flapped, alive]);
}

function result(fault: Pick<Fault, 'id' | 'fault' | 'required'>, judgement: Judgement): Result {
  return { id: fault.id, fault: fault.fault, required: fault.required, ...judgement };
}

async function playOverride(run: Run, fault: Fault, model: string): Promise<Result> {
  const nonce = randomUUID();
  run.vendor.plan(nonce, fault.play);
  const label = fault.unreachable ? run.labels.nobody : run.labels.vendor;
  const answer = await sendChat(run.gateway, nonce, {
    model: 'gw/balanced',
    override: `self_hosted/${label}:${model}`,
    stream: fault.stream,
    ...limitsOf(fault, run.idleSeconds),
  });
  const calls = run.vendor.calls(nonce).length;
  if (calls === 0 && !fault.unreachable) return result(fault, fail(notReached(answer)));
  return result(fault, judge(fault, answer, calls, false));
}

function notReached(answer: Answer): string {
  return `the gateway did not reach the vendor: status ${answer.status}, ${answer.text.slice(0, 200)}`;
}

/** What every client of a healthy vendor gets. */
const healthy: Fault = {
  id: 'healthy',
  fault: 'none: a healthy vendor after all that',
  required: 'the whole answer, as JSON and as a stream',
  stream: false,
  play: () => {},
};

async function askHealthy(run: Run, model: string, stream: boolean): Promise<Judgement> {
  const nonce = randomUUID();
  const fault = { ...healthy, stream };
  const override = `self_hosted/${run.labels.vendor}:${model}`;
  const ask = { model: 'gw/balanced', override, stream, ...limitsOf(fault, run.idleSeconds) };
  const answer = await sendChat(run.gateway, nonce, ask);
  const { verdict, happened } = judge(fault, answer, run.vendor.calls(nonce).length, false);
  return verdict === 'pass' ? { verdict, happened } : fail(happened);
}

async function playHealthy(run: Run, model: string): Promise<Result> {
  const seen = [await askHealthy(run, model, false), await askHealthy(run, model, true)];
  return result(healthy, seen.find(({ verdict }) => verdict === 'fail') ?? (seen[0] as Judgement));
}

async function playFlapping(run: Run, model: string): Promise<Result> {
  const flapping: Fault = {
    id: 'flapping',
    fault: `a vendor that answers 503 ${flaps} times and is healthy then`,
    required: 'its words while it is down, its answer as soon as it is up',
    stream: false,
    refusal: { status: 503 },
    play: (wire) => wire.answer(503, { 'content-type': 'application/json' }, refusalBody(503)),
  };
  const seen: Judgement[] = [];
  for (let turn = 0; turn < flaps; turn += 1)
    seen.push(
      await playOverride(run, flapping, model).then(({ verdict, happened }) => ({ verdict, happened })),
    );
  for (let turn = 0; turn < flaps; turn += 1) seen.push(await askHealthy(run, model, turn % 2 === 0));
  const failed = seen.find(({ verdict }) => verdict === 'fail');
  return result(
    flapping,
    failed ?? { verdict: 'pass', happened: 'refused while it was down, served at once after' },
  );
}

/** How many chats a row of the table stands for, and how many of them were a success. */
function expectedRows(id: string, verdict: Verdict, refused: boolean): { rows: number; successes: number } {
  if (id === 'flapping') return { rows: 2 * flaps, successes: flaps };
  if (id === 'healthy') return { rows: 2, successes: 2 };
  return { rows: 1, successes: verdict === 'pass' && !refused ? 1 : 0 };
}

/** A row is missing, doubled or untrue: that is a failure, however well the client was treated. */
async function withRows(
  gateway: Gateway,
  since: Date,
  tag: string,
  results: readonly Result[],
): Promise<Result[]> {
  const wanted = results.map((one) => {
    const refused = faults.find(({ id }) => id === one.id)?.refusal !== undefined;
    return { one, ...expectedRows(one.id, one.verdict, refused) };
  });
  const total = wanted.reduce((sum, { rows }) => sum + rows, 0);
  const deadline = Date.now() + rowsLimitMs;
  let rows = await rowsSince(gateway, since);
  const ours = () => rows.filter(({ model }) => model.endsWith(`-${tag}`));
  while (ours().length < total && Date.now() < deadline) {
    await pause(rowsPollMs);
    rows = await rowsSince(gateway, since);
  }
  return wanted.map(({ one, rows: count, successes }) => {
    const found = ours().filter(({ model }) => model === `${one.id}-${tag}`);
    const served = found.filter(({ status }) => status === 'success').length;
    if (one.verdict === 'fail' || (found.length === count && served === successes)) return one;
    const happened = `${one.happened}; the log has ${found.length} rows, ${served} of them a success`;
    return { ...one, verdict: 'fail', happened };
  });
}
