import { leastMeanChunkBytes, mostTinyChunks } from '../../../src/http/body/measured-message.ts';
import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Auth, BodyPlan, Leaving, Reading, Sending } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';

const kib = 1024;
/** `bodyLimitBytes` of the chart. */
export const bodyLimitBytes = 20 * kib * kib;
/** So many tiny chunks are an attack; more of them only take time. A write is a system call on both sides. */
const mostPieces = { chunked: 100_000, length: 2_000 } as const;
/** A client that promised more than it sends waits so long for an answer. */
const patienceMs = 250;

const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];

const sizes = (random: Random): number =>
  random.weighted<() => number>([
    [40, () => 0],
    [20, () => random.size(1, 64 * kib)],
    [12, () => 64 * kib + random.int(-1, 1)],
    [8, () => random.size(64 * kib, 512 * kib)],
    [2, () => kib * kib + random.int(-1, 1)],
    [0.4, () => random.size(kib * kib, 4 * kib * kib)],
    [0.1, () => bodyLimitBytes + random.int(-1, 1)],
  ])();

const pieceSizes = (random: Random): number =>
  random.weighted([
    [3, 1],
    [2, random.int(2, 16)],
    [3, random.size(16, 64 * kib)],
    [3, 64 * kib],
  ]);

const auths = (random: Random): Auth =>
  random.weighted<Auth>([
    [70, 'known'],
    [8, 'forgotten'],
    [8, 'unknown'],
    [7, 'malformed'],
    [7, 'none'],
  ]);

/** Odd, and a chat all the same: a vendor gets it as it came. */
const oddChat = Buffer.from(
  `{"model":"gw/balanced","messages":[{"role":"user","content":"\\u0000\\ud800"}]}`,
);

/** Texts that are no JSON, JSON that is no chat, and chats that no schema takes. */
function junk(random: Random): Buffer {
  const depth = random.size(1, 5_000);
  return random.weighted<() => Buffer>([
    [2, () => Buffer.alloc(0)],
    [2, () => random.bytes(random.size(1, 4 * kib))],
    [2, () => Buffer.from('{"model":"gw/balanced","messages":['.repeat(random.int(1, 3)))],
    [2, () => Buffer.from('['.repeat(depth) + ']'.repeat(depth))],
    [1, () => Buffer.from(`{"a":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`)],
    [2, () => Buffer.from(`{"messages":[${'{},'.repeat(random.size(1, 60_000))}{}]}`)],
    [1, () => Buffer.from(`[${'1e400,'.repeat(random.size(1, 20_000))}1]`)],
    [1, () => oddChat],
    [1, () => Buffer.from('\ufeff{"model":"gw/balanced","messages":[]}')],
    [
      1,
      () => Buffer.from(JSON.stringify({ model: 'gw/balanced', messages: 'x'.repeat(random.size(1, 9000)) })),
    ],
  ])();
}

function bodyOf(random: Random): BodyPlan {
  if (random.chance(0.15)) return { kind: 'bytes', bytes: junk(random) };
  return { kind: 'chat', fields: random.chance(0.3) ? { stream: true } : {}, totalBytes: sizes(random) };
}

function withinReason(pieceBytes: number, body: BodyPlan, framing: Sending['framing']): number {
  const bytes = body.kind === 'chat' ? body.totalBytes : body.bytes.length;
  return Math.max(pieceBytes, Math.ceil(bytes / mostPieces[framing]));
}

/** Whether so many chunks are so small that the connection may be closed for it; where a read ends, one becomes two. */
function mayBeTooTiny({ framing, pieceBytes }: Sending, bytes: number): boolean {
  return (
    framing === 'chunked' && pieceBytes <= leastMeanChunkBytes && bytes / pieceBytes > mostTinyChunks / 2
  );
}

function statusesOf(sending: Sending): readonly number[] | null {
  const { auth, body, lengthLie, copies } = sending;
  if (lengthLie !== 0 || copies > 1 || body === null) return null;
  const bytes = body.kind === 'chat' ? body.totalBytes : body.bytes.length;
  const tiny = mayBeTooTiny(sending, bytes) ? [400] : [];
  if (auth === 'unknown' || auth === 'malformed' || auth === 'none') return [401, ...tiny];
  if (body.kind === 'bytes') return body.bytes === oddChat ? [200] : [400, 422, 413];
  if (tiny.length > 0) return [400, 200, 503];
  // Several large bodies at once may be more than there is room for.
  if (body.totalBytes > 64 * kib) return body.totalBytes > bodyLimitBytes ? [413, 503] : [200, 503];
  return [200];
}

/** Every way to send a body. */
export function sendCase(seed: number): AttackCase {
  const random = new Random(seed);
  const body = bodyOf(random);
  const stopIn = random.weighted<Sending['stopIn']>([
    [70, 'never'],
    [8, 'head'],
    [22, 'body'],
  ]);
  const slow = random.chance(0.06);
  const framing = random.pick<Sending['framing']>(['length', 'chunked']);
  const sending: Sending = {
    ...plainSending,
    auth: auths(random),
    body,
    framing,
    lengthLie: random.weighted([
      [92, 0],
      [4, random.size(1, bodyLimitBytes)],
      [2, -random.int(1, 50)],
      [2, bodyLimitBytes * random.int(1, 1000)],
    ]),
    pieceBytes: withinReason(pieceSizes(random), body, framing),
    pauseMs: slow ? random.int(1, 10) : 0,
    expectContinue: random.chance(0.05),
    stopIn,
    stopAt: random.fraction(),
    stopHow: random.pick(leavings),
    copies: stopIn === 'never' && random.chance(0.05) ? random.int(2, 6) : 1,
  };
  const lies = sending.framing === 'length' && sending.lengthLie > 0;
  const reading: Reading = lies
    ? { kind: 'leave', afterBytes: 0, afterMs: patienceMs, how: sending.stopHow }
    : random.weighted<Reading>([
        [9, { kind: 'all' }],
        [1, { kind: 'half-close' }],
      ]);
  return { sending, reading, vendor: null, statuses: reading.kind === 'all' ? statusesOf(sending) : null };
}

/** The same, only the worst of it: bodies in one-byte chunks, large ones promised and not sent, by strangers too. */
export function hoardCase(seed: number): AttackCase {
  const random = new Random(seed);
  const tiny = random.chance(0.6);
  const sending: Sending = {
    ...plainSending,
    auth: random.pick(['known', 'known', 'none', 'unknown']),
    body: { kind: 'chat', fields: {}, totalBytes: tiny ? random.size(16 * kib, 256 * kib) : 2 * kib },
    framing: tiny ? 'chunked' : 'length',
    lengthLie: tiny ? 0 : random.size(64 * kib, bodyLimitBytes - 4 * kib),
    pieceBytes: tiny ? random.int(1, 3) : 64 * kib,
    stopIn: random.chance(0.7) ? 'body' : 'never',
    stopAt: 0.5 + random.fraction() / 2,
    stopHow: random.pick(leavings),
  };
  const reading: Reading = tiny
    ? { kind: 'all' }
    : { kind: 'leave', afterBytes: 0, afterMs: patienceMs, how: sending.stopHow };
  return { sending, reading, vendor: null, statuses: null };
}
