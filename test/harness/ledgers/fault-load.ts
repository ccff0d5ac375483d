import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request as call } from 'undici';
import { onTestFinished, TestRunner } from 'vitest';
import { poolConnectMs } from '../../../src/adapters/postgres/pool.ts';
import { chatBody, chatPath } from '../gateway/chat.ts';
import type { User } from '../gateway/register.ts';
import { eventually } from '../measure/eventually.ts';

/** One chat request as its client saw it. */
export interface Sent {
  /** The X-Request-ID; also in the prompt, so that the vendor's ledger knows it. */
  readonly id: string;
  readonly user: User;
  readonly stream: boolean;
  /** Null: no answer came. */
  readonly status: number | null;
  /** The last byte came: the whole JSON, or `[DONE]` and the end of the stream. */
  readonly whole: boolean;
  readonly text: string;
  /** Of the wall clock, which all processes of a test have in common. */
  readonly startedAtMs: number;
  readonly tookMs: number;
}

/** Keeps connections alive, as clients do. */
export function loadAgent(): Agent {
  return new Agent({ connections: 64, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });
}

const sharedAgent = loadAgent();

export interface SendOptions {
  readonly stream?: boolean;
  /** Said in the prompt beside the id, for vendors to answer by. */
  readonly say?: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent;
}

/** Sends one chat request and notes what came of it; never rejects. */
export async function sendChat(url: string, user: User, options: SendOptions = {}): Promise<Sent> {
  const id = randomUUID();
  const stream = options.stream ?? false;
  const startedAtMs = Date.now();
  const begunMs = performance.now();
  let status: number | null = null;
  let text = '';
  let ended = false;
  try {
    const response = await call(url + chatPath, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${user.key}`,
        'content-type': 'application/json',
        'x-request-id': id,
        ...options.headers,
      },
      body: JSON.stringify(
        chatBody({
          stream,
          messages: [{ role: 'user', content: `request ${id} ${options.say ?? ''}` }],
          ...options.body,
        }),
      ),
      dispatcher: options.agent ?? sharedAgent,
    });
    status = response.statusCode;
    for await (const chunk of response.body) text += (chunk as Buffer).toString('utf8');
    ended = true;
  } catch {
    // the connection was refused or broke: what came so far is kept
  }
  const whole = ended && (!stream || status !== 200 || text.endsWith('data: [DONE]\n\n'));
  return { id, user, stream, status, whole, text, startedAtMs, tookMs: performance.now() - begunMs };
}

/** A user is known once nothing more is heard of the registration of its keys, which empties the memory again. */
const chatsUntilKnown = 10;

/** Chats until the gateway surely has the account in memory, where an outage of its store finds it. */
export async function becomeKnown(url: string, user: User): Promise<Sent[]> {
  const sent: Sent[] = [];
  while (sent.length < chatsUntilKnown) sent.push(await sendChat(url, user));
  return sent;
}

/**
 * Those refused since Postgres was too slow for the look-up of an account, and not before its time was up: on a busy
 * machine a fresh process, which knows nobody yet, may meet that. All who ask for one account wait for one look-up: who
 * joined it waited less.
 */
export function lateLookUps(sent: readonly Sent[]): readonly Sent[] {
  const refused = sent.filter(
    ({ status, text }) => status === 503 && text.includes('"code":"database_unavailable"'),
  );
  const begunBy = refused.filter(({ tookMs }) => tookMs >= poolConnectMs);
  const joined = (one: Sent, first: Sent): boolean =>
    one.user === first.user &&
    one.startedAtMs >= first.startedAtMs &&
    one.startedAtMs <= first.startedAtMs + first.tookMs;
  return refused.filter((one) => begunBy.some((first) => joined(one, first)));
}

/** What was not served whole, in words fit for a failed assertion. */
export function failures(sent: readonly Sent[]): string[] {
  return sent
    .filter((one) => one.status !== 200 || !one.whole)
    .map((one) => `${one.id} ${one.status} ${one.stream ? 'stream' : 'json'} ${one.text.slice(-300)}`);
}

export interface LoadOptions {
  readonly url: string;
  readonly users: readonly User[];
  /** Requests in flight at once. */
  readonly workers?: number;
  /** Rest of a worker between two requests: leaves the machine air to breathe. */
  readonly restMs?: number;
  /** Every how many requests one is a stream; 0: none. */
  readonly streamEvery?: number;
  readonly agent?: Agent;
}

export interface Load {
  /** Finished requests so far, in order of their end. */
  readonly sent: readonly Sent[];
  /** Resolves when `count` more requests than now have finished. */
  more(count: number): Promise<void>;
  /** Lets running requests finish; all of them. */
  stop(): Promise<readonly Sent[]>;
}

/**
 * Sends chat requests of these users, one after the other per worker, until it is stopped, which the end of the test
 * that began it does too.
 */
export function startLoad(options: LoadOptions): Load {
  const { url, users, workers = 6, restMs = 15, streamEvery = 3, agent } = options;
  const sent: Sent[] = [];
  let stopped = false;
  const work = async (first: number): Promise<void> => {
    for (let index = first; !stopped; index += 1) {
      const user = users[index % users.length] as User;
      const stream = streamEvery > 0 && index % streamEvery === 0;
      sent.push(await sendChat(url, user, { stream, ...(agent === undefined ? {} : { agent }) }));
      await pause(restMs);
    }
  };
  const running = Promise.all(Array.from({ length: workers }, (_, index) => work(index)));
  const stop = async () => {
    stopped = true;
    await running;
    return sent;
  };
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(async () => void (await stop()));
  return {
    sent,
    more: async (count) => {
      const wanted = sent.length + count;
      await eventually(() => Promise.resolve(sent.length >= wanted || undefined), 30_000);
    },
    stop,
  };
}
