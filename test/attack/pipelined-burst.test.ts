/** Strangers who send thousands of requests at once and read no answer: what one turn reads is bounded over all. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordFault } from '../harness/scorecard/scorecard.ts';
import { startBystander } from './judge/bystander.ts';
import type { Baseline } from './judge/quiet.ts';
import { baselineOf, untilQuiet } from './judge/quiet.ts';
import { bareSockets } from './wire/sockets.ts';
import type { World } from './world.ts';
import { makeWorld } from './world.ts';

const mebibyte = 1024 * 1024;
const connections = 900;
/** Of each connection, some 900 requests: with a third of the connections it once took the whole heap. */
const burst = Buffer.from('GET /v1/nothing HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(900));

let world: World;
let baseline: Baseline;

beforeAll(async () => {
  world = await makeWorld();
  baseline = await baselineOf(world);
});

afterAll(async () => {
  await world?.close();
});

test(`${connections} strangers with a burst of requests each take neither memory nor the others' answers`, async () => {
  const open = bareSockets(world.gateway().url);
  const sockets = Array.from({ length: connections }, () => open().pause());
  await Promise.all(sockets.map((socket) => socket.connecting && once(socket, 'connect')));
  world.witness().peakBytes();
  const bystander = startBystander(world, 'burst');
  for (const socket of sockets) socket.write(burst);
  // Nobody reads: whether a connection was cut is seen when more is written to it.
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.write('\r\n', resolve))));
  const { problems } = await bystander.stop();
  const peakBytes = world.witness().peakBytes();
  for (const socket of sockets) socket.destroy();
  const quiet = await untilQuiet(world, baseline);
  expect(problems).toEqual([]);
  expect(quiet.problems).toEqual([]);
  expect(peakBytes).toBeLessThan(world.limitBytes / 2);
  recordFault({
    fault: `${connections} strangers with 900 requests each in one write, whose answers nobody reads`,
    required: 'the process lives within half of its memory, and serves others',
    figure: `peak ${(peakBytes / mebibyte).toFixed(0)} MiB`,
    passed: true,
  });
}, 300_000);
