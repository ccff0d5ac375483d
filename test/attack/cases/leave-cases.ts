import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Auth, Leaving, Sending, VendorStep } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { chunkEvent, completionJson, jsonHead, lastEvents, streamHead, write } from './wire-form.ts';

/** Each way between the gateway and Postgres, so that look-ups and commits can be left in the middle. */
export const slowPostgresMs = 15;

const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];

/** A vendor that takes its time before the head, after it, and between two halves of the body. */
function unhurried(random: Random, stream: boolean): readonly VendorStep[] {
  const pause = (): VendorStep => ({ kind: 'wait', ms: random.size(1, 120) });
  if (!stream) {
    const body = Buffer.from(completionJson('hello '.repeat(random.size(1, 5_000))));
    const middle = Math.floor(body.length / 2);
    return [
      pause(),
      write(jsonHead(body.length)),
      pause(),
      write(body.subarray(0, middle)),
      pause(),
      write(body.subarray(middle)),
    ];
  }
  const events = chunkEvent({ content: 'hello ' }).repeat(random.size(1, 300));
  return [
    pause(),
    write(streamHead()),
    pause(),
    write(events),
    pause(),
    write(lastEvents()),
    { kind: 'end' },
  ];
}

type Point = 'look-up' | 'body' | 'attempt' | 'relay' | 'settlement';

/** At each point where a client can leave, at every moment of it. */
export function leaveCase(seed: number): AttackCase {
  const random = new Random(seed);
  const how = random.pick(leavings);
  const stream = random.chance(0.5);
  const point = random.pick<Point>(['look-up', 'body', 'attempt', 'relay', 'settlement']);
  const auth: Auth = point === 'look-up' ? random.pick<Auth>(['unknown', 'forgotten']) : 'known';
  const large = random.chance(0.3);
  const sending: Sending = {
    ...plainSending,
    auth,
    headers: random.chance(0.15) ? { 'x-gateway-cache': 'true' } : {},
    body: {
      kind: 'chat',
      fields: stream ? { stream: true } : {},
      totalBytes: large ? random.size(65_000, 900_000) : 0,
    },
    framing: random.pick(['length', 'chunked']),
    expectContinue: random.chance(0.05),
    stopHow: how,
    ...(point === 'look-up' || point === 'body'
      ? { stopIn: 'body', stopAt: point === 'look-up' ? 0 : random.fraction() }
      : {}),
    pieceBytes: random.pick([100, 4096, 64 * 1024]),
  };
  const steps =
    point === 'settlement' ? [write(sound(stream)), { kind: 'end' } as const] : unhurried(random, stream);
  const afterMs = point === 'settlement' ? random.int(2, 8 * slowPostgresMs) : random.size(1, 300);
  const afterBytes = point === 'relay' ? random.size(1, 60_000) : 0;
  return {
    sending,
    reading: { kind: 'leave', afterBytes, afterMs, how },
    vendor: { begins: random.chance(0.8) ? 'whole' : 'early', sound: true, steps },
    statuses: null,
  };
}

/** A short answer that is there at once: the row is what is waited for. */
function sound(stream: boolean): string {
  if (stream) return streamHead() + chunkEvent({ content: 'hello' }) + lastEvents();
  const body = completionJson('hello');
  return jsonHead(Buffer.byteLength(body), 'connection: close\r\n') + body;
}
