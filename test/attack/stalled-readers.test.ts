/**
 * Clients that never read, hundreds of megabytes of answers between them: the process lives, is let go of what it made
 * by its own limits, which are really waited for, and serves others meanwhile.
 */

import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/measure/eventually.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { sentBytes } from '../harness/measure/sent-bytes.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import type { AttackCase, VendorScript } from './attack-case.ts';
import { plainSending } from './attack-case.ts';
import { chunkEvent, completionJson, jsonAnswer, streamAnswer } from './cases/wire-form.ts';
import { bystanderLimitMs, startBystander } from './judge/bystander.ts';
import type { Baseline } from './judge/quiet.ts';
import { baselineOf, untilQuiet } from './judge/quiet.ts';
import { requestBytes } from './wire/request-bytes.ts';
import { bareSockets } from './wire/sockets.ts';
import type { World } from './world.ts';
import { makeWorld } from './world.ts';

const mebibyte = 1024 * 1024;
/** More than the kernel takes of an answer whose reader does not read. */
const answerBytes = 6 * mebibyte;
/**
 * It takes five minutes, nearly all of which are waited for: a reader is let go after 30 s, one of a replay after 60,
 * and a dozen is there at once. No part has a limit of its own, which a busy machine would break.
 */
const testLimitMs = 900_000;
/** Of an attempt: this process is the vendor, and busy with all else. */
const attemptSeconds = 120;
/** The chart's default gives the kernel's part of answers 38, a quarter more while it is asked, and what a turn writes. */
const mostSentBytes = 64 * mebibyte;
const text = 'word '.repeat(answerBytes / 5);

type Kind = 'JSON answers' | 'streams' | 'cache hits' | 'replays of cached answers';

/** At once, not together: answers of vendors have a room of their own while they come. */
const lanes = 4;
/** Of the bystander, who is there until the last readers are let go. */
const bystanderSockets = 2;
/** A cached answer belongs to its user. */
const cachingUsers = 2;
/** As the refusal says. */
const retryAfterMs = 1_000;
const readers: Readonly<Record<Kind, number>> = {
  'JSON answers': 80,
  streams: 15,
  'cache hits': 15,
  'replays of cached answers': 10,
};
const all = Object.values(readers).reduce((sum, count) => sum + count, 0);

const scripts: Readonly<Record<Kind, VendorScript>> = {
  'JSON answers': jsonAnswer(Buffer.from(completionJson(text))),
  'cache hits': jsonAnswer(Buffer.from(completionJson(text))),
  'replays of cached answers': jsonAnswer(Buffer.from(completionJson(text))),
  streams: streamAnswer([
    {
      kind: 'repeat',
      bytes: Buffer.from(chunkEvent({ content: 'word '.repeat(40) })),
      times: answerBytes / 200,
    },
  ]),
};

let world: World;
let baseline: Baseline;
let open: () => Socket;

beforeAll(async () => {
  world = await makeWorld({ limits: { cache_entry_bytes: 2 * answerBytes }, attemptSeconds });
  baseline = await baselineOf(world);
});

afterAll(async () => {
  await world?.close();
});

function caseOf(kind: Kind, prompt: string): AttackCase {
  const stream = kind === 'streams' || kind === 'replays of cached answers';
  const cached = kind === 'cache hits' || kind === 'replays of cached answers';
  const messages = [{ role: 'user', content: `call ${prompt} x` }];
  const fields = stream ? { messages, stream: true } : { messages };
  const cache = cached ? { 'x-gateway-cache': 'true' } : {};
  return {
    sending: {
      ...plainSending,
      headers: { 'x-gateway-override-model': 'openai:gpt-test', connection: 'close', ...cache },
      body: { kind: 'chat', fields, totalBytes: 0 },
    },
    reading: { kind: 'all' },
    vendor: null,
    statuses: [200],
  };
}

function send(request: ReturnType<typeof requestBytes>): Socket {
  const socket = open();
  for (const piece of request.pieces) socket.write(piece);
  return socket;
}

/** One who reads everything: so that a cached answer is there. */
async function fill(user: number, prompt: string): Promise<void> {
  const { key } = world.users[user] as { key: string };
  world.vendor.play(prompt, scripts['cache hits']);
  const socket = send(requestBytes(caseOf('cache hits', prompt), `${prompt}-first`, key));
  await new Promise((resolve) => socket.once('close', resolve).resume());
}

/** Takes the beginning of an answer and no more; empty where none came. */
async function begin(socket: Socket): Promise<string> {
  return new Promise<string>((resolve) => {
    socket.once('close', () => resolve(''));
    socket.once('data', (bytes) => {
      socket.pause();
      resolve(bytes.toString('latin1', 0, 2_000));
    });
  });
}

/** Asks until it is answered: a busy gateway sheds load, and answers of vendors have a room of their own. */
async function beginReading(kind: Kind, index: number): Promise<string> {
  const cached = kind === 'cache hits' || kind === 'replays of cached answers';
  const user = index % (cached ? cachingUsers : world.users.length);
  const { key } = world.users[user] as { key: string };
  const deadlineMs = performance.now() + testLimitMs;
  let answer = '';
  for (let time = 0; performance.now() < deadlineMs; time += 1) {
    const id = `atk-stall-${kind.replaceAll(' ', '-')}-${index}-${time}`;
    if (!cached) world.vendor.play(id, scripts[kind]);
    const socket = send(requestBytes(caseOf(kind, cached ? `atk-cached-${user}` : id), id, key));
    answer = await begin(socket);
    if (answer.startsWith('HTTP/1.1 200 ')) return id;
    socket.destroy();
    await delay(retryAfterMs);
  }
  throw new Error(`${kind} ${index} was refused to the end, last with ${answer}`);
}

/** Statuses of the rows of each request. */
async function rows(): Promise<Map<string, string[]>> {
  const found = await world.query<{ request_id: string; status: string }>(
    "SELECT request_id, status FROM request_logs WHERE request_id LIKE 'atk-stall-%'",
    [],
  );
  const byId = Map.groupBy(found, (row) => row.request_id);
  return new Map([...byId].map(([id, own]) => [id, own.map(({ status }) => status)]));
}

test(
  `${all} clients that never read ${answerBytes / mebibyte} MiB each are let go, and nobody else suffers`,
  async () => {
    open = bareSockets(world.gateway().url);
    for (let user = 0; user < cachingUsers; user += 1) await fill(user, `atk-cached-${user}`);
    world.witness().peakBytes();
    const bystander = startBystander(world, 'stall');
    const kinds = Object.entries(readers) as [Kind, number][];
    const waiting = kinds.flatMap(([kind, count]) =>
      Array.from({ length: count }, (_, index) => ({ kind, index })),
    );
    const ids: string[] = [];
    const own = Number(new URL(world.gateway().url).port);
    let mostSent = 0;
    let mostStalled = 0;
    const clients = async () =>
      (await world.witness().ask()).sockets.filter(({ localPort }) => localPort === own).length;
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        ids.push(await beginReading(next.kind, next.index));
        mostSent = Math.max(mostSent, sentBytes(own));
        mostStalled = Math.max(mostStalled, await clients());
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    const untilLeft = (others: number) =>
      eventually(async () => (await clients()) <= baseline.clientSockets + others || undefined, testLimitMs);
    await untilLeft(bystanderSockets);
    const { problems, slowestMs, controlMs } = await bystander.stop();
    // The last reader may have been taken for one of the bystander's: it has its whole time too.
    await untilLeft(0);
    const peakBytes = world.witness().peakBytes();
    const quiet = await untilQuiet(world, baseline);
    const byId = await rows();
    const statusesOf = (kind: Kind) => [
      ...new Set(
        ids.filter((id) => id.includes(kind.replaceAll(' ', '-'))).map((id) => byId.get(id)?.join(' and ')),
      ),
    ];
    const letGo = await metric(world.gateway(), 'gw_stalled_readers_total');
    const figure = `${mostStalled} connections at once, peak ${(peakBytes / mebibyte).toFixed(0)} MiB and ${(mostSent / mebibyte).toFixed(0)} MiB in the kernel, a bystander waited ${slowestMs.toFixed(0)} ms at most (${controlMs.toFixed(0)} ms where nobody attacks)`;
    process.stdout.write(`${figure}; let go ${letGo}\n`);
    expect(problems).toEqual([]);
    expect(quiet.problems).toEqual([]);
    expect(peakBytes).toBeLessThan(world.limitBytes);
    expect(mostSent).toBeLessThan(mostSentBytes);
    expect(slowestMs).toBeLessThan(bystanderLimitMs(controlMs));
    expect(statusesOf('JSON answers')).toEqual(['success']);
    expect(statusesOf('cache hits')).toEqual(['success']);
    expect(statusesOf('streams')).toEqual(['client_closed']);
    expect(statusesOf('replays of cached answers')).toEqual(['client_closed']);
    expect(letGo).toBeGreaterThan(0);
    recordFault({
      fault: `${all} clients that never read answers of ${answerBytes / mebibyte} MiB`,
      required:
        'the process lives within its memory, lets go of them by its own limits, and serves others in time',
      figure,
      passed: true,
    });
  },
  testLimitMs,
);
