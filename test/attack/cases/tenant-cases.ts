import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Leaving, Reading, VendorScript, VendorStep } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { chunkEvent, completionJson, jsonHead, lastEvents, streamHead, write } from './wire-form.ts';

const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];
/** Longer than an attempt may take. */
const foreverMs = 3_000;
/** More than any limit of an answer lets in; a reader that leaves has had enough long before. */
const endlessBytes = 24 * 1024 * 1024;
const piece = 64 * 1024;

const endless = (unit: string): VendorStep => {
  const bytes = Buffer.from(unit.repeat(Math.ceil(piece / unit.length)));
  return { kind: 'repeat', bytes, times: Math.ceil(endlessBytes / bytes.length) };
};
/** Stays open, as long as the server likes: the gateway is asked to keep it for ten minutes. */
const keptHead = (length: number): string =>
  jsonHead(length, 'connection: keep-alive\r\nkeep-alive: timeout=600\r\n');
const chunkedHead = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const body = (random: Random): Buffer => Buffer.from(completionJson('hello '.repeat(random.size(1, 2_000))));

type Server = (random: Random) => readonly VendorStep[];

/** What a server of a tenant's own may do with a call, and with the socket that it came by. */
const servers: readonly [Server, ...Server[]] = [
  () => [{ kind: 'wait', ms: foreverMs }],
  () => [write('HTTP/1.1 200 OK\r\ncontent-type: '), { kind: 'wait', ms: foreverMs }],
  () => [write(jsonHead(100)), { kind: 'wait', ms: foreverMs }],
  () => [write(streamHead() + chunkEvent({ content: 'a' })), { kind: 'wait', ms: foreverMs }],
  (random) => [
    { kind: 'wait', ms: random.size(1, 1_800) },
    write(keptHead(body(random).length)),
    write(body(random)),
  ],
  (random) => {
    const bytes = body(random);
    return [write(keptHead(bytes.length)), write(bytes)];
  },
  (random) => {
    const bytes = body(random);
    return [write(jsonHead(bytes.length)), write(bytes, random.int(1, 40), random.int(1, 12))];
  },
  (random) => [
    write(streamHead()),
    write(chunkEvent({ content: 'hello ' }).repeat(random.size(1, 60)), random.int(1, 80), random.int(1, 12)),
    write(lastEvents()),
    { kind: 'end' },
  ],
  () => [write(streamHead()), endless(chunkEvent({ content: 'word '.repeat(40) }))],
  () => [write(streamHead()), endless(': still here\n\n')],
  () => [write(chunkedHead), endless(`100\r\n${' '.repeat(256)}\r\n`)],
  () => [endless('HTTP/1.1 103 Early Hints\r\n\r\n')],
  () => [write('HTTP/1.1 200 OK\r\n'), endless('x-more: and more\r\n')],
  () => [{ kind: 'reset' }],
  () => [{ kind: 'end' }],
];

function readings(random: Random): Reading {
  const afterMs = random.size(1, 1_500);
  return random.weighted<() => Reading>([
    [5, () => ({ kind: 'all' })],
    [3, () => ({ kind: 'leave', afterBytes: 0, afterMs, how: random.pick(leavings) })],
    [2, () => ({ kind: 'leave', afterBytes: random.size(1, 100_000), afterMs, how: random.pick(leavings) })],
    [1, () => ({ kind: 'never', leaveAfterMs: afterMs, how: random.pick(leavings) })],
    [1, () => ({ kind: 'slow', pieceBytes: 1_024, pauseMs: 5, slowBytes: 64 * 1024 })],
  ])();
}

/** Tenants whose own servers hold calls, sockets and answers for as long as they are let, many at once. */
export function tenantCase(seed: number): AttackCase {
  const random = new Random(seed);
  const steps = random.pick(servers)(random);
  const vendor: VendorScript = { begins: random.pick(['early', 'whole']), steps, sound: false };
  const reading = readings(random);
  // A longer limit is the caller's own wish; whoever waits to the end keeps to the usual one.
  const patience = reading.kind === 'all' || reading.kind === 'slow' ? {} : { 'x-gateway-timeout': '300' };
  const headers = { 'x-gateway-override-model': 'self_hosted:m', ...patience };
  const fields = random.chance(0.5) ? { stream: true } : {};
  return {
    sending: { ...plainSending, headers, body: { kind: 'chat', fields, totalBytes: 0 } },
    reading,
    vendor,
    statuses: null,
  };
}
