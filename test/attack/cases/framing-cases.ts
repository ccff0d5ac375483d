import { gzipSync } from 'node:zlib';
import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, VendorScript, VendorStep } from '../attack-case.ts';
import { oddText } from './hostile-json.ts';
import { askFor } from './vendor-cases.ts';
import { chunkEvent, completionJson, lastEvents, write } from './wire-form.ts';

/** A vendor's answer below its content: heads, lengths, chunks, pauses, and ends at each point. */

/** No answer may wait for one byte more than the attempt's limit. */
const longWaitMs = 2_500;

function headers(random: Random): string {
  return random.weighted<() => string>([
    [60, () => ''],
    [8, () => `x-${'a'.repeat(random.size(1, 200))}: ${'b'.repeat(random.size(1, 20_000))}\r\n`],
    [
      8,
      () => Array.from({ length: random.size(1, 3_000) }, (_, index) => `x-${index}: ${index}\r\n`).join(''),
    ],
    [5, () => `retry-after: ${random.pick(['0', '-1', '1e9', 'Mon, 01 Jan 2999 00:00:00 GMT', 'x'])}\r\n`],
    [5, () => `keep-alive: timeout=${random.pick(['0', '600', '999999999', '-1'])}\r\n`],
    [3, () => `set-cookie: ${'c'.repeat(4000)}\r\n`.repeat(random.int(1, 30))],
    [3, () => `content-type: ${oddText(random).replaceAll(/[^ -~]/g, '')}\r\n`],
    [3, () => `x-odd : 1\r\n folded\r\n`],
    [2, () => `x-latin: \xe9\xff\r\n`],
    [2, () => `location: http://127.0.0.1:1/\r\nrefresh: 0\r\n`],
  ])();
}

function statusLine(random: Random): string {
  return random.weighted([
    [80, 'HTTP/1.1 200 OK'],
    [4, 'HTTP/1.0 200 OK'],
    [2, 'HTTP/1.1 200'],
    [2, 'HTTP/2 200 OK'],
    [2, 'ICY 200 OK'],
    [2, 'HTTP/1.1 999 Odd'],
    [2, 'HTTP/1.1 204 No Content'],
    [2, 'HTTP/1.1 304 Not Modified'],
    [2, 'HTTP/1.1 503 Busy'],
    [2, `HTTP/1.1 429 ${'x'.repeat(random.size(1, 9_000))}`],
  ]);
}

/** Answers that come before the answer (RFC 9110, 15.2). */
function informational(random: Random): string {
  const one = random.pick([
    '100 Continue',
    '102 Processing',
    '103 Early Hints',
    '199 Odd',
    '101 Switching Protocols',
  ]);
  return `HTTP/1.1 ${one}\r\n\r\n`.repeat(
    random.weighted([
      [5, 1],
      [1, random.size(1, 500)],
    ]),
  );
}

function framed(random: Random, body: Buffer): { readonly header: string; readonly bytes: Buffer } {
  const lie = random.weighted([
    [70, 0],
    [10, random.size(1, 100_000)],
    [10, -random.int(1, Math.max(1, body.length))],
    [3, 1e15],
  ]);
  const size = (length: number): string => length.toString(16);
  const chunks = (pieceBytes: number, extension: string): Buffer => {
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length; at += pieceBytes) {
      const piece = body.subarray(at, at + pieceBytes);
      parts.push(Buffer.from(`${size(piece.length)}${extension}\r\n`), piece, Buffer.from('\r\n'));
    }
    return Buffer.concat(parts);
  };
  const chunkedHeader = 'transfer-encoding: chunked\r\n';
  const end = random.pick([
    '0\r\n\r\n',
    '0\r\n\r\n',
    '0\r\nx-trailer: 1\r\n\r\n',
    `0\r\n${'t: 1\r\n'.repeat(2000)}\r\n`,
    '',
    'zz\r\n',
    'ffffffffff\r\nx',
  ]);
  return random.weighted<() => { header: string; bytes: Buffer }>([
    [5, () => ({ header: `content-length: ${Math.max(0, body.length + lie)}\r\n`, bytes: body })],
    [
      4,
      () => ({
        header: chunkedHeader,
        bytes: Buffer.concat([chunks(random.size(1, 5_000), ''), Buffer.from(end)]),
      }),
    ],
    [
      1,
      () => ({
        header: chunkedHeader,
        bytes: Buffer.concat([chunks(1, `;${'e'.repeat(random.size(1, 200))}`), Buffer.from(end)]),
      }),
    ],
    [2, () => ({ header: 'connection: close\r\n', bytes: body })],
    [
      1,
      () => ({
        header: `${chunkedHeader}content-length: 5\r\n`,
        bytes: Buffer.concat([chunks(1000, ''), Buffer.from('0\r\n\r\n')]),
      }),
    ],
    [1, () => ({ header: 'content-length: 5\r\ncontent-length: 6\r\n', bytes: body })],
  ])();
}

/** Where the connection ends before its time. */
function cutAt(random: Random, steps: readonly VendorStep[]): VendorStep[] {
  const last: VendorStep = random.pick([{ kind: 'end' }, { kind: 'reset' }]);
  const kept = steps.slice(0, random.int(0, steps.length));
  const step = kept.pop();
  if (step?.kind !== 'write') return [...kept, last];
  return [...kept, { ...step, bytes: step.bytes.subarray(0, random.int(0, step.bytes.length)) }, last];
}

export function framingCase(seed: number): AttackCase {
  const random = new Random(seed);
  const stream = random.chance(0.5);
  const text = stream
    ? chunkEvent({ content: 'hello' }).repeat(random.size(1, 200)) + lastEvents()
    : completionJson('hello '.repeat(random.size(1, 2_000)));
  const plain = Buffer.from(text);
  const zipped = random.chance(0.1);
  const { header, bytes } = framed(random, zipped ? gzipSync(plain, { level: 1 }) : plain);
  const type = `content-type: ${stream ? 'text/event-stream' : 'application/json'}\r\n`;
  const coding = zipped ? 'content-encoding: gzip\r\n' : '';
  const head = `${statusLine(random)}\r\n${headers(random)}${type}${coding}${header}\r\n`;
  const pieceBytes = random.weighted([
    [6, 64 * 1024],
    [2, random.size(1, 2_000)],
    [1, 1],
  ]);
  const dripped = Math.min(bytes.length, pieceBytes * 500);
  const whole: VendorStep[] = [
    ...(random.chance(0.1) ? [write(informational(random))] : []),
    ...(random.chance(0.01) ? [{ kind: 'wait', ms: longWaitMs } as const] : []),
    {
      kind: 'write',
      bytes: Buffer.from(head, 'latin1'),
      pieceBytes: random.chance(0.2) ? 7 : 64 * 1024,
      pauseMs: 0,
    },
    write(bytes.subarray(0, dripped), pieceBytes, random.chance(0.05) ? random.int(1, 5) : 0),
    ...(random.chance(0.01) ? [{ kind: 'wait', ms: longWaitMs } as const] : []),
    write(bytes.subarray(dripped)),
    ...(random.chance(0.05) ? [write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')] : []),
    ...(/connection: close/.test(header) || random.chance(0.15) ? [{ kind: 'end' } as const] : []),
  ];
  const steps = random.chance(0.3) ? cutAt(random, whole) : whole;
  const vendor: VendorScript = { begins: random.chance(0.9) ? 'whole' : 'early', sound: false, steps };
  return { sending: askFor(random, 'openai', stream), reading: { kind: 'all' }, vendor, statuses: null };
}
