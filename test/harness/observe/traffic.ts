import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request as call } from 'undici';
import type { User } from '../gateway/register.ts';
import type { Story } from './stories.ts';
import { stories } from './stories.ts';

/** Demo load: stories in random order at a rate that swings, as days do. */

/** How long a client that reads late, leaves or gives up waits first. */
const RELUCTANT_MS = 1_200;
/** The rate goes up and down by this share, once per period. */
const SWING = 0.5;
const SWING_PERIOD_MS = 40_000;
/** Prompts that come again. */
const REPEATED_PROMPTS = 8;
const CLIENT_LIMIT_MS = 60_000;

/** One request as its client saw it. */
export interface Seen {
  readonly story: Story;
  /** Null: the connection broke before an answer. */
  readonly status: number | null;
  /** Milliseconds to the head of the answer, which a stream sends with its first token. */
  readonly headMs: number;
  /** Null when the client left or the answer broke. */
  readonly text: string | null;
}

export interface Traffic {
  /** Starts no more requests; resolves when those under way have ended. */
  stop(): Promise<void>;
}

export interface TrafficOptions {
  /** Gateways that are asked in turn now. */
  readonly urls: () => readonly string[];
  readonly users: readonly User[];
  /** On average. */
  readonly requestsPerSecond: number;
  /** Told of each request that has ended. */
  readonly onEnd?: (seen: Seen) => void;
}

export function startTraffic({ urls, users, requestsPerSecond, onEnd }: TrafficOptions): Traffic {
  const agent = new Agent({
    connections: 512,
    headersTimeout: CLIENT_LIMIT_MS,
    bodyTimeout: CLIENT_LIMIT_MS,
  });
  const open = new Set<Promise<void>>();
  const stopped = new AbortController();
  const begin = performance.now();
  let count = 0;
  const sendOne = (story: Story) => {
    const serving = urls();
    const url = serving[count % serving.length] ?? '';
    const user = users[Math.floor(count / serving.length) % users.length] as User;
    count += 1;
    const one = tell(url, user, story, agent).then((result) => {
      onEnd?.(result);
      open.delete(one);
    });
    open.add(one);
  };
  const running = (async () => {
    while (!stopped.signal.aborted) {
      for (const story of shuffled(stories.flatMap((one) => Array<Story>(one.often).fill(one)))) {
        if (stopped.signal.aborted) return;
        sendOne(story);
        const phase = (2 * Math.PI * (performance.now() - begin)) / SWING_PERIOD_MS;
        const rate = requestsPerSecond * (1 + SWING * Math.sin(phase));
        await delay(1_000 / rate, undefined, { signal: stopped.signal }).catch(() => undefined);
      }
    }
  })();
  return {
    stop: async () => {
      stopped.abort();
      await running;
      await Promise.all(open);
      await agent.close();
    },
  };
}

/** Sends the request of one story; never rejects. */
async function tell(url: string, user: User, story: Story, agent: Agent): Promise<Seen> {
  const begin = performance.now();
  let status: number | null = null;
  let headMs = 0;
  let text: string | null = null;
  try {
    const response = await call(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${user.key}`,
        'content-type': 'application/json',
        ...story.headers,
      },
      body: JSON.stringify({
        model: story.model,
        stream: story.stream,
        messages: [{ role: 'user', content: promptOf(story) }],
      }),
      dispatcher: agent,
      ...(story.reader === 'gives up' ? { signal: AbortSignal.timeout(RELUCTANT_MS) } : {}),
    });
    status = response.statusCode;
    headMs = performance.now() - begin;
    if (story.reader !== undefined) await delay(RELUCTANT_MS);
    if (story.reader === 'leaves') response.body.on('error', () => undefined).destroy();
    else text = await response.body.text();
  } catch {
    // The connection broke: what is known so far is kept.
  }
  return { story, status, headMs, text };
}

/** The mode is named, so that a vendor's ledger tells it. */
function promptOf(story: Story): string {
  const about = `${story.name} in ${story.model} ${story.say ?? ''}`;
  if (story.repeated) return `${about} number ${Math.floor(Math.random() * REPEATED_PROMPTS)}`;
  return `${about} ${randomUUID()}`;
}

/** Fisher and Yates. */
function shuffled<T>(list: readonly T[]): readonly T[] {
  const mixed = [...list];
  for (let index = mixed.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1));
    [mixed[index], mixed[other]] = [mixed[other] as T, mixed[index] as T];
  }
  return mixed;
}
