/** Streams that are read well, of which something is kept, and that fall silent: what they take is bounded over all. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/measure/eventually.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { AttackCase, VendorScript } from './attack-case.ts';
import { plainSending } from './attack-case.ts';
import { chunkEvent, streamHead, write } from './cases/wire-form.ts';
import { startBystander } from './judge/bystander.ts';
import type { Baseline } from './judge/quiet.ts';
import { baselineOf, untilQuiet } from './judge/quiet.ts';
import { requestBytes } from './wire/request-bytes.ts';
import { bareSockets } from './wire/sockets.ts';
import type { World } from './world.ts';
import { makeWorld } from './world.ts';

const mebibyte = 1024 * 1024;
/** Of two accounts, as many as their own servers may have connections. */
const users = 2;
const streams = 1_000;
/** Until they end well, half as long as a request may take here: by then all that is to be kept is. */
const silentMs = 10_000;
const limitMs = 300_000;

/** What a server says and falls silent, so that something of it is kept with each stream. */
interface Hoard {
  readonly what: string;
  readonly kept: string;
  /** In what clients get of it, at its end. */
  readonly lastMark: string;
  /** With which the stream ends well, behind `kept`. */
  readonly rest: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** 290 KB of the heap each, were they all kept. */
function choicesAndCalls(choices: number, callsOfEach: number): Hoard {
  const calls = Array.from({ length: callsOfEach }, (_, index) => ({
    index,
    id: `c${index}`,
    type: 'function',
    function: { name: 'f', arguments: '' },
  }));
  const indexes = Array.from({ length: choices }, (_, index) => index);
  const ends = indexes.map((index) => ({ index, delta: {}, finish_reason: 'tool_calls' }));
  return {
    what: `${choices} choices with ${callsOfEach} calls each`,
    kept: indexes
      .map((index) => ({ index, delta: { content: 'x', tool_calls: calls }, finish_reason: null }))
      .map((choice) => sse({ ...openAiChunk('m', {}), choices: [choice] }))
      .join(''),
    lastMark: `"index":${choices - 1},`,
    rest: sse({ ...openAiChunk('m', {}), choices: ends }),
    headers: {},
  };
}

/** An answer that is to be stored, and an event that is not whole: each small, and beside the heap. */
function halfEvent(bytes: number): Hoard {
  const text = chunkEvent({ content: 'x'.repeat(bytes) });
  return {
    what: `half an event of ${bytes} bytes, and as much to be stored`,
    kept:
      chunkEvent({ content: 'y'.repeat(bytes / 2) }) +
      chunkEvent({ content: '-the mark-' }) +
      text.slice(0, -2),
    lastMark: '-the mark-',
    rest: text.slice(-2) + chunkEvent({}, 'stop'),
    headers: { 'x-gateway-cache': 'true' },
  };
}

const hoards: readonly Hoard[] = [choicesAndCalls(128, 7), halfEvent(60_000)];

const scriptOf = ({ kept, rest }: Hoard): VendorScript => ({
  begins: 'whole',
  sound: true,
  steps: [
    write(streamHead() + chunkEvent({ role: 'assistant', content: 'x' })),
    write(kept),
    { kind: 'wait', ms: silentMs },
    write(rest + sse('[DONE]')),
    { kind: 'end' },
  ],
});

const caseOf = ({ headers }: Hoard, id: string): AttackCase => ({
  sending: {
    ...plainSending,
    headers: { 'x-gateway-override-model': 'self_hosted:m', connection: 'close', ...headers },
    body: {
      kind: 'chat',
      fields: { stream: true, messages: [{ role: 'user', content: `call ${id} x` }] },
      totalBytes: 0,
    },
  },
  reading: { kind: 'all' },
  vendor: null,
  statuses: null,
});

let world: World;
let baseline: Baseline;

beforeAll(async () => {
  world = await makeWorld({ attemptSeconds: (2 * silentMs) / 1000 });
  baseline = await baselineOf(world);
});

afterAll(async () => {
  await world?.close();
});

test.each(hoards)(
  `${streams} streams of ${users} users that keep $what take neither memory nor the others' answers`,
  {
    timeout: limitMs,
  },
  async (hoard) => {
    const open = bareSockets(world.gateway().url);
    world.witness().peakBytes();
    const bystander = startBystander(world, 'kept');
    const waiting = new Set<number>();
    let refused = 0;
    const closed: Promise<unknown>[] = [];
    for (let index = 0; index < streams; index += 1) {
      const id = `atk-kept-${hoards.indexOf(hoard)}-${index}`;
      world.vendor.play(id, scriptOf(hoard));
      const { key } = world.users[index % users] as { key: string };
      const socket = open();
      waiting.add(index);
      let text = '';
      socket.on('data', (bytes) => {
        text = (text + bytes.toString('latin1')).slice(-4_096);
        if (text.includes(hoard.lastMark)) waiting.delete(index);
      });
      closed.push(
        once(socket, 'close').then(() => {
          if (waiting.delete(index) || text.includes('"error"')) refused += 1;
        }),
      );
      for (const piece of requestBytes(caseOf(hoard, id), id, key).pieces) socket.write(piece);
    }
    await eventually(async () => waiting.size === 0 || undefined, limitMs);
    const peakBytes = world.witness().peakBytes();
    await Promise.all(closed);
    const { problems } = await bystander.stop();
    const quiet = await untilQuiet(world, baseline);
    const figure = `peak ${(peakBytes / mebibyte).toFixed(0)} MiB, ${refused} were ended or refused`;
    process.stdout.write(`${figure}\n`);
    expect(problems).toEqual([]);
    expect(quiet.problems).toEqual([]);
    expect(peakBytes).toBeLessThan(world.limitBytes);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(streams);
    recordFault({
      fault: `${streams} streams of ${users} users that keep ${hoard.what}, and fall silent`,
      required: 'the process lives within its memory, ends what it has no room for, and serves others',
      figure,
      passed: true,
    });
  },
);
