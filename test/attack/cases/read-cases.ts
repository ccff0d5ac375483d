import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Leaving, Reading, Sending, VendorScript } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { chunkEvent, completionJson, jsonAnswer, streamAnswer } from './wire-form.ts';

const kib = 1024;
const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];

/** A text of about so many bytes. */
const textOf = (bytes: number): string => 'word '.repeat(Math.max(1, Math.floor(bytes / 5)));

/** Answers that differ only in their size, so that the reading is what the case is about. */
function soundAnswer(random: Random, stream: boolean): VendorScript {
  const bytes = random.weighted([
    [60, random.size(5, 8 * kib)],
    [30, random.size(8 * kib, 256 * kib)],
    [8, random.size(256 * kib, 1024 * kib)],
    [1, random.size(1024 * kib, 6 * 1024 * kib)],
  ]);
  if (!stream) return jsonAnswer(Buffer.from(completionJson(textOf(bytes))));
  const events = Math.max(1, Math.floor(bytes / 200));
  const event = Buffer.from(chunkEvent({ content: textOf(10) }));
  return streamAnswer([{ kind: 'repeat', bytes: event, times: events }]);
}

function readingOf(random: Random): Reading {
  return random.weighted<() => Reading>([
    [2, () => ({ kind: 'all' })],
    [3, () => ({ kind: 'never', leaveAfterMs: random.size(1, 800), how: random.pick(leavings) })],
    [
      3,
      () => ({
        kind: 'slow',
        pieceBytes: random.weighted([
          [2, 1],
          [1, random.size(1, 4 * kib)],
        ]),
        pauseMs: random.chance(0.5) ? 0 : random.int(1, 5),
        slowBytes: random.size(100, 3000),
      }),
    ],
    [1, () => ({ kind: 'half-close' })],
    [
      3,
      () => ({
        kind: 'leave',
        afterBytes: random.size(1, 300 * kib),
        afterMs: 0,
        how: random.pick(leavings),
      }),
    ],
  ])();
}

/** Cache hits share a prompt: the first of them asks the vendor, the others are answered from memory. */
function cached(random: Random, stream: boolean): Pick<AttackCase, 'sending' | 'vendor'> {
  const bytes = random.pick([100, 20 * kib, 300 * kib, 900 * kib]);
  const prompt = `call atk-cached-${bytes} cached`;
  const fields = { messages: [{ role: 'user', content: prompt }], ...(stream ? { stream: true } : {}) };
  return {
    sending: {
      ...plainSending,
      headers: { 'x-gateway-cache': 'true', 'x-gateway-override-model': 'openai:gpt-test' },
      body: { kind: 'chat', fields, totalBytes: 0 },
    },
    // Played for the case's own id, which its prompt does not name: such a call gets a healthy answer.
    vendor: null,
  };
}

/** Every way to read an answer. */
export function readCase(seed: number): AttackCase {
  const random = new Random(seed);
  const reading = readingOf(random);
  const stream = random.chance(0.5);
  const kind = random.weighted([
    [7, 'answer'],
    [2, 'cached'],
    [1, 'refusal'],
    [1, 'logs'],
  ]);
  if (kind === 'cached') return { ...cached(random, stream), reading, statuses: [200] };
  if (kind === 'refusal') {
    const sending: Sending = {
      ...plainSending,
      body: { kind: 'chat', fields: { model: 'x' }, totalBytes: 0 },
    };
    return { sending, reading, vendor: null, statuses: [422] };
  }
  if (kind === 'logs') {
    const path = `/v1/logs?limit=${random.pick([1, 100, 1000])}`;
    return {
      sending: { ...plainSending, method: 'GET', path, body: null },
      reading,
      vendor: null,
      statuses: [200],
    };
  }
  const fields = stream ? { stream: true } : {};
  const sending: Sending = {
    ...plainSending,
    headers: { 'x-gateway-override-model': 'openai:gpt-test' },
    body: { kind: 'chat', fields, totalBytes: 0 },
  };
  return { sending, reading, vendor: soundAnswer(random, stream), statuses: [200] };
}
