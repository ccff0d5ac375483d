import { brotliCompressSync, deflateSync, gzipSync, constants as zlib } from 'node:zlib';
import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Sending, VendorScript, VendorStep } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { anthropicBody, anthropicEvent, openAiBody, openAiEvent } from './answer-grammar.ts';
import { anyValue, countOf, oddText } from './hostile-json.ts';
import { chunkEvent, completionJson, lastEvents, streamHead, write } from './wire-form.ts';

type Wire = 'openai' | 'anthropic';

const models: Readonly<Record<Wire, string>> = {
  openai: 'openai:gpt-test',
  anthropic: 'anthropic:claude-test',
};

/** Mostly one provider by name; sometimes the whole tier, so that a bad answer is followed by a fallback. */
export function askFor(
  random: Random,
  wire: Wire,
  stream: boolean,
  more: Readonly<Record<string, unknown>> = {},
): Sending {
  const headers = random.chance(0.85) ? { 'x-gateway-override-model': models[wire] } : {};
  const cache = random.chance(0.05) ? { 'x-gateway-cache': 'true' } : {};
  const usage = stream && random.chance(0.5) ? { stream_options: { include_usage: true } } : {};
  const fields = { ...(stream ? { stream: true, ...usage } : {}), ...more };
  return {
    ...plainSending,
    headers: { ...headers, ...cache },
    body: { kind: 'chat', fields, totalBytes: 0 },
  };
}

const status = (random: Random): number =>
  random.weighted([
    [85, 200],
    [3, random.pick([201, 202, 204, 206])],
    [3, random.pick([301, 302, 304, 307])],
    [5, random.pick([400, 401, 403, 404, 408, 413, 422, 429])],
    [4, random.pick([500, 502, 503, 504, 529, 599])],
  ]);

/** Compressed as asked by nobody; the brotli quality is low, since the time is ours. */
const encoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [zlib.BROTLI_PARAM_QUALITY]: 1 } }),
};

interface Coded {
  readonly headers: string;
  readonly body: Buffer;
}

function coded(random: Random, body: Buffer): Coded {
  if (random.chance(0.75)) return { headers: '', body };
  const name = random.pick(['gzip', 'deflate', 'br', 'gzip', 'x-odd', 'gzip, gzip']);
  const encoded = encoders[name]?.(body) ?? body;
  const cut = random.chance(0.2) ? encoded.subarray(0, random.int(0, encoded.length)) : encoded;
  return { headers: `content-encoding: ${name}\r\n`, body: cut };
}

/** A bomb: many blanks, or many of one small value, around what might have been an answer. */
function bomb(random: Random): Buffer {
  const unit = random.pick([
    ' ',
    '{},',
    '[],',
    '0,',
    '"",',
    '{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"},',
  ]);
  const times = Math.floor(random.size(10_000, 12 * 1024 * 1024) / unit.length);
  if (unit === ' ') return Buffer.from(' '.repeat(times) + completionJson('hello'));
  const many = unit.repeat(times).slice(0, -1);
  return Buffer.from(`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[${many}]}`);
}

/** A whole JSON answer from the grammar, honestly framed. */
export function vendorJsonCase(seed: number): AttackCase {
  const random = new Random(seed);
  const wire: Wire = random.chance(0.7) ? 'openai' : 'anthropic';
  const bent = { oddity: random.pick([0, 0.02, 0.1, 0.4]) };
  const bytes = random.weighted<() => Buffer>([
    [85, () => Buffer.from(wire === 'openai' ? openAiBody(random, bent) : anthropicBody(random, bent))],
    [6, () => Buffer.from(anyValue(random, 5))],
    [3, () => Buffer.from(`\ufeff${openAiBody(random, bent)}`)],
    [3, () => spoiled(random, Buffer.from(openAiBody(random, bent)))],
    [0.6, () => bomb(random)],
  ])();
  const { headers, body } = coded(random, bytes);
  const type = random.pick([
    'application/json',
    'application/json',
    'application/json',
    'text/plain',
    'text/html',
  ]);
  const head = `HTTP/1.1 ${status(random)} X\r\ncontent-type: ${type}\r\n${headers}content-length: ${body.length}\r\n\r\n`;
  const vendor: VendorScript = { begins: 'whole', sound: false, steps: [write(head), write(body)] };
  const stream = random.chance(0.25);
  return { sending: askFor(random, wire, stream), reading: { kind: 'all' }, vendor, statuses: null };
}

/** Bytes that are no UTF-8, somewhere in it. */
function spoiled(random: Random, bytes: Buffer): Buffer {
  for (let times = random.int(1, 4); times > 0; times -= 1)
    bytes[random.int(0, bytes.length - 1)] = random.int(128, 255);
  return bytes;
}

const ends = (random: Random): string => random.pick(['\n', '\r\n', '\r', '\n', '\n']);

/** One event, with line ends, fields and data lines as no vendor would write them. */
function oddEvent(random: Random, event: string): string {
  const end = ends(random);
  return random.weighted<() => string>([
    [12, () => event.replaceAll('\n', end)],
    [2, () => `: ${oddText(random).replaceAll(/[\r\n]/g, '')}${end}${end}`],
    [2, () => `id: 1${end}retry: 5${end}${event}`],
    [1, () => `data: {"id":${end}data: "x"}${end}${end}`],
    [1, () => `data:${event.slice(6)}`],
    [1, () => `event: error${end}data: ${anyValue(random, 2)}${end}${end}`],
    [1, () => `data: ${anyValue(random, 4)}${end}${end}`],
    [1, () => event.slice(0, random.int(0, event.length))],
    [0.3, () => `${'data: \n'.repeat(random.size(1, 140_000))}\n`],
    [0.3, () => `${'data: {\n'.repeat(random.size(1, 60_000))}\n`],
    [0.3, () => `data: ${'x'.repeat(random.size(1, 1_200_000))}\n\n`],
    [0.3, () => '\n'.repeat(random.size(1, 200_000))],
  ])();
}

/** Longer streams only take longer. */
const mostStreamBytes = 6 * 1024 * 1024;

/** A stream from the grammar: what comes, how often, in which pieces, and how it ends. */
export function vendorStreamCase(seed: number): AttackCase {
  const random = new Random(seed);
  const wire: Wire = random.chance(0.7) ? 'openai' : 'anthropic';
  const bent = { oddity: random.pick([0, 0.02, 0.1, 0.4]) };
  const oddity = random.pick([0, 0.05, 0.3]);
  const event = () => (wire === 'openai' ? openAiEvent(random, bent) : anthropicEvent(random, bent));
  const count = countOf(random, 3_000);
  const few = Array.from({ length: Math.min(count, 24) }, () => {
    const text = event();
    const data = text.startsWith('event:') ? text : `data: ${text}\n\n`;
    return random.chance(oddity) ? oddEvent(random, data) : data;
  });
  const round = few.join('');
  const rounds = Math.min(
    Math.ceil(count / 24),
    Math.max(1, Math.floor(mostStreamBytes / (round.length + 1))),
  );
  const text = round.repeat(rounds);
  const start = random.chance(0.7) ? chunkEvent({ role: 'assistant', content: 'a' }) : '';
  const pieceBytes = random.weighted([
    [2, 1],
    [3, random.int(2, 200)],
    [5, 64 * 1024],
  ]);
  // One byte per write costs a system call each: the rest of a long stream comes whole.
  const bytes = Buffer.from(start + text);
  const dripped = Math.min(bytes.length, pieceBytes * 1_000);
  const steps: VendorStep[] = [
    write(streamHead(random.chance(0.1) ? 'x-odd: 1\r\n' : '')),
    write(bytes.subarray(0, dripped), pieceBytes, random.chance(0.03) ? 1 : 0),
    write(bytes.subarray(dripped)),
    ...endOf(random),
  ];
  const vendor: VendorScript = { begins: 'whole', sound: false, steps };
  return { sending: askFor(random, wire, true), reading: { kind: 'all' }, vendor, statuses: null };
}

function endOf(random: Random): VendorStep[] {
  return random.weighted<VendorStep[]>([
    [50, [write(lastEvents()), { kind: 'end' }]],
    [10, [{ kind: 'end' }]],
    [10, [{ kind: 'reset' }]],
    [8, [write('data: [DONE]\n\n'), { kind: 'end' }]],
    [4, [write(lastEvents()), write(lastEvents()), { kind: 'end' }]],
    [
      4,
      [
        write('data: [DONE]\n\ndata: {"choices":[{"index":0,"delta":{"content":"late"}}]}\n\n'),
        { kind: 'end' },
      ],
    ],
    [4, [write(lastEvents()), { kind: 'wait', ms: 1500 }, { kind: 'end' }]],
    [4, [write('data: {"choices":[{"index":0,"del'), { kind: 'end' }]],
    [1, [{ kind: 'wait', ms: 3000 }, { kind: 'end' }]],
  ]);
}
