import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { User } from '../../harness/gateway/register.ts';
import type { Sent } from '../../harness/ledgers/fault-load.ts';
import { failures, startLoad } from '../../harness/ledgers/fault-load.ts';
import { eventually } from '../../harness/measure/eventually.ts';

/** What the child is to do. */
export interface LoadOrder {
  readonly url: string;
  readonly users: readonly { readonly id: string; readonly key: string }[];
  readonly perSecond: number;
  /** Every how many requests one is a stream. */
  readonly streamEvery: number;
}

/** A request as it crosses the process boundary: its user is an index. */
export type SentRecord = Omit<Sent, 'user'> & { readonly user: number };

export type LoadReport =
  | { readonly kind: 'progress'; readonly answered: number }
  | {
      readonly kind: 'done';
      readonly sent: SentRecord[];
      readonly seconds: number;
      readonly skipped: number;
    };

/** Everything that was sent, and how it was offered. */
export interface Offered {
  readonly sent: readonly Sent[];
  /** From the first request due to the last. */
  readonly seconds: number;
  /** Due, but not sent, since too many were open. */
  readonly skipped: number;
}

export interface OpenLoop {
  /** Resolves when `count` more requests than now have been served whole. */
  more(count: number): Promise<void>;
  /** Sends no more and waits for those that are open. */
  stop(): Promise<Offered>;
  /** For when the test failed: the child is gone, whatever it was doing. */
  kill(): void;
}

/** The rate of the promise in the fault catalogue. */
export const requestsPerSecond = 300;
const moreLimitMs = 120_000;
/** Of what the machine can do at all: faults are to be seen, not overload. */
const shareOfCapacity = 0.5;
const shownFailures = 5;
const calibrationRequests = 600;
const calibrationWorkers = 16;

/**
 * The rate to offer: the promised one, or half of what this machine can do when that is less. What was sent meanwhile is
 * part of the ledgers.
 */
export async function affordableRate(
  url: string,
  users: readonly User[],
): Promise<{ readonly perSecond: number; readonly sent: readonly Sent[] }> {
  const load = startLoad({ url, users, workers: calibrationWorkers, restMs: 0 });
  await load.more(calibrationRequests);
  const startedAtMs = performance.now();
  const before = load.sent.length;
  await load.more(calibrationRequests);
  const capacity = ((load.sent.length - before) / (performance.now() - startedAtMs)) * 1000;
  return { perSecond: Math.min(requestsPerSecond, capacity * shareOfCapacity), sent: await load.stop() };
}

/**
 * Sends chats of these users at a steady rate from a process of its own, on kept-alive connections. It does not wait for
 * answers before the next request is due, as clients in the world do not either.
 */
export function startOpenLoop(url: string, users: readonly User[], perSecond: number): OpenLoop {
  const child = fork(join(import.meta.dirname, 'load-child.ts'), { serialization: 'advanced' });
  let answered = 0;
  const done = new Promise<Offered>((resolve, reject) => {
    child.on('message', (report: LoadReport) => {
      if (report.kind === 'progress') answered = report.answered;
      else {
        const sent = report.sent.map((one) => ({ ...one, user: users[one.user] as User }));
        resolve({ sent, seconds: report.seconds, skipped: report.skipped });
        // It ends only now: an exit of its own could overtake its last message.
        child.disconnect();
      }
    });
    void once(child, 'exit').then(([code]) => reject(new Error(`the load ended by itself (${code})`)));
  });
  // A load that is killed is not missed.
  done.catch(() => {});
  const order: LoadOrder = {
    url,
    users: users.map(({ id, key }) => ({ id, key })),
    perSecond,
    streamEvery: 3,
  };
  child.send(order);
  return {
    more: async (count) => {
      const wanted = answered + count;
      await eventually(() => Promise.resolve(answered >= wanted || undefined), moreLimitMs);
    },
    stop: () => {
      child.send('stop');
      return done;
    },
    kill: () => {
      child.kill('SIGKILL');
    },
  };
}

/** What was not served whole: how many, and a few of them. */
export function fewFailures(sent: readonly Sent[]): readonly string[] {
  const found = failures(sent);
  return found.length <= shownFailures ? found : [`${found.length}:`, ...found.slice(0, shownFailures)];
}

/** Requests that were served whole. */
export function served(sent: readonly Sent[]): readonly Sent[] {
  return sent.filter((one) => one.status === 200 && one.whole);
}

/** How often something is done; an environment setting makes a trial run short. */
export function times(setting: string, usual: number): number {
  return Number(process.env[setting] ?? usual);
}

/**
 * Gateways start as fast as with `npm start`, since starts are what the stage spends its time on, and shed no load: a
 * process that is just starting on a busy machine would, and what it does then is not the matter here.
 */
export const stageSettings = {
  GW_MAX_EVENT_LOOP_DELAY_MS: '0',
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../../node_modules/.cache/model-gateway/compiled'),
};
