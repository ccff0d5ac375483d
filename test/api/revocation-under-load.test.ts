/**
 * Whoever is shut out is shut out of every replica a second after the answer that says so, also while 300 requests a
 * second come in that do not wait for each other's answers.
 */
import { describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, measured } from '../harness/measure/fault-bounds.ts';

const token = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_ADMIN_TOKEN: token } });
const other = useReplica(gateway);
const replicas = () => [gateway.url, other.url] as const;

const perSecond = 300;
const tickMs = 5;
/** Open at once; on a machine that cannot keep up fewer are sent. */
const mostOpen = 200;
/** One in so many is a chat, the others list models. */
const chatEvery = 10;
/** Of each replica, before the decision and from a second after it. */
const fewest = 150;
const boundMs = 1_000;

interface Sent {
  readonly replica: string;
  readonly sentAtMs: number;
  /** 0: no answer yet. */
  status: number;
}

/** Sends requests with this key to both replicas in turn, as they are due. */
function startLoad(key: string): { readonly sent: readonly Sent[]; stop(): Promise<void> } {
  const sent: Sent[] = [];
  const answers = new Set<Promise<void>>();
  const startedAtMs = performance.now();
  let due = 0;
  const send = (number: number): void => {
    const replica = replicas()[number % 2] as string;
    const client = httpClient(replica, key);
    const one: Sent = { replica, sentAtMs: performance.now(), status: 0 };
    sent.push(one);
    // Both replicas get both kinds.
    const isChat = Math.floor(number / 2) % chatEvery === 0;
    const asked = isChat ? client.post(chatPath, chatBody({})) : client.get('/v1/models');
    const answer = asked.then(({ status }) => {
      one.status = status;
      answers.delete(answer);
    });
    answers.add(answer);
  };
  const timer = setInterval(() => {
    const untilNow = ((performance.now() - startedAtMs) / 1_000) * perSecond;
    for (; due < untilNow; due += 1) if (answers.size < mostOpen) send(due);
  }, tickMs);
  return {
    sent,
    stop: async () => {
      clearInterval(timer);
      await Promise.all(answers);
    },
  };
}

/** Resolves when each replica has answered so many of them with this status. */
const untilAnswered = (sent: readonly Sent[], status: number, sinceMs: number): Promise<true> =>
  eventually(async () => {
    const counts = replicas().map(
      (url) =>
        sent.filter((one) => one.replica === url && one.status === status && one.sentAtMs > sinceMs).length,
    );
    return Math.min(...counts) >= fewest || undefined;
  });

type Decision = (user: User) => Promise<{ readonly key: string; decide(): Promise<number> }>;

const operator = () => httpClient(gateway.adminUrl, token);

const decisions: readonly (readonly [name: string, decision: Decision, status: number])[] = [
  [
    'a revoked key',
    async (user) => {
      const made = await user.client.post('/v1/service-keys', {});
      const { id, api_key: key } = made.json<{ id: string; api_key: string }>();
      const decide = async () => (await user.client.delete(`/v1/service-keys/${id}`)).status;
      return { key, decide };
    },
    204,
  ],
  [
    'a disabled user',
    async ({ id, key }) => ({
      key,
      decide: async () =>
        (await operator().request('PATCH', `/admin/users/${id}`, { body: { disabled: true } })).status,
    }),
    200,
  ],
  [
    'a deleted user',
    async ({ id, key }) => ({
      key,
      decide: async () => (await operator().delete(`/admin/users/${id}`)).status,
    }),
    204,
  ],
];

describe.each(decisions)('%s', (name, decision, status) => {
  test(`is accepted by no replica a second later, under ${perSecond} requests a second`, async () => {
    const { key, decide } = await decision(await registerWithKeys(gateway.url, ['openai']));
    const load = startLoad(key);
    try {
      await untilAnswered(load.sent, 200, 0);
      expect(await decide()).toBe(status);
      const decidedAtMs = performance.now();
      await untilAnswered(load.sent, 401, decidedAtMs + boundMs);
      await load.stop();
      const latenesses = load.sent
        .filter((one) => one.status < 400)
        .map(({ sentAtMs }) => sentAtMs - decidedAtMs);
      expectWithin(
        `${name}: the last accepted request, after the answer`,
        Math.max(0, ...latenesses),
        boundMs,
      );
      // On a busy machine Postgres may answer a look-up too late: that lets nobody in.
      expect(load.sent.filter((one) => ![200, 401, 503].includes(one.status))).toEqual([]);
      const judged = load.sent.filter(({ sentAtMs }) => sentAtMs > decidedAtMs + boundMs).length;
      measured(`${name}: ${load.sent.length} requests, ${judged} of them sent a second after the answer`);
    } finally {
      await load.stop();
    }
  });
});
