import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, VendorScript } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';
import { bodyLimitBytes } from './send-cases.ts';
import { completionJson, jsonAnswer } from './wire-form.ts';

const mebibyte = 1024 * 1024;

/** What else the body holds: a model, a role, a prompt that names the case. */
const frameBytes = 1024;

type Filler = readonly [string, ...string[]];

/** JSON text of which a long string can be made: each is searched, parsed, written again and encoded in its own way. */
const honest: Filler = [
  'x',
  'const value = answer(question);\\n',
  '\u4e2d',
  '\u4e2d\u6587\\n',
  '\u{1f600}',
  '\u00e9',
  '12345 67890, ',
  'iVBORw0KGgoAAAANSUhEUgAA',
];
const escapes: Filler = [
  '\\n',
  '\\"',
  '\\\\',
  '\\/',
  '\\\\u',
  '\\n\\u0041',
  '\\u0041',
  '\\u0001',
  '\\u4e2d',
  '\\ud83d\\ude00',
  '\\ud800',
  '\\udc00',
  '\\ud83d\\u0041',
  'a\\n',
  '\\"\u4e2d',
];
/** Near what a number, or its exponent, looks like. */
const digits: Filler = ['1e+1e+', '123456789012345x', '0e', '1234567890123456 ', '9e99', '.', '-'];

const repeated = (text: string, bytes: number): string =>
  text.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(text))));

/** A body of one long string, or of a few, up to the limit of bodies. */
function textBody(random: Random): string {
  const room = bodyLimitBytes - frameBytes;
  const bytes = random.chance(0.7) ? room : random.size(64 * 1024, room);
  const filler = (): string => random.pick(random.pick([honest, escapes, escapes, digits]));
  const parts = random.pick([1, 1, 1, 2, 5]);
  return Array.from({ length: parts }, () => repeated(filler(), Math.floor(bytes / parts))).join('');
}

/** As many messages, parts or tools as anybody may send, each of a short text. */
function manyBody(random: Random): string {
  const text = random.pick(random.pick([honest, escapes]));
  const kind = random.pick(['messages', 'parts', 'tools']);
  const count = random.size(1_000, 12_000);
  const short = repeated(text, random.size(1, 1_500));
  if (kind === 'tools')
    return `"}],"tools":[${Array.from(
      { length: count },
      (_, index) =>
        `{"type":"function","function":{"name":"f${index}","description":"${short}","parameters":{}}}`,
    ).join(',')}],"user":"x`;
  if (kind === 'parts')
    return `"},{"role":"user","content":[${Array(count).fill(`{"type":"text","text":"${short}"}`).join(',')}]}],"user":"x`;
  return `"}${`,{"role":"user","content":"${short}"}`.repeat(count)}],"user":"x`;
}

/** What the arguments of a tool call can be full of: whoever translates them reads each text by itself. */
const inArguments: readonly [string, ...string[]] = [
  '{}',
  '[[]]',
  '0',
  '{"a":0}',
  '0.12345678901234567890',
  '1e100',
  '1'.repeat(900),
  `"${'\\ud800'.repeat(100)}"`,
  `"${'\\n'.repeat(100)}"`,
];

/** Tool calls whose arguments are JSON of many small values, in few long texts or in thousands of short ones. */
function argumentsBody(random: Random): string {
  const item = random.pick(inArguments);
  const bytes = random.size(64 * 1024, bodyLimitBytes - frameBytes);
  const each = random.size(1_000, Math.max(1_000, bytes / 2));
  // In its string each quote and backslash takes two bytes.
  const text = JSON.stringify(`{"a":[${repeated(`${item},`, each)}0]}`);
  const call = `{"id":"a","type":"function","function":{"name":"f","arguments":${text}}}`;
  const calls = Array(Math.max(1, Math.floor(bytes / (call.length + 1)))).fill(call);
  return `"},{"role":"assistant","content":null,"tool_calls":[${calls.join(',')}]}],"user":"x`;
}

/** A vendor's answer of one long string, in JSON; the limit of answers is 16 MiB. */
function textAnswer(random: Random): VendorScript {
  const text = repeated(
    random.pick(random.pick([honest, escapes, digits])),
    random.size(mebibyte, 12 * mebibyte),
  );
  const [before, after] = completionJson('@').split('"@"') as [string, string];
  return jsonAnswer(Buffer.from(`${before}"${text}"${after}`));
}

/** Text rather than values: bodies, and some answers, whose bytes take long to search, parse, write and encode. */
export function costlyTextCase(seed: number): AttackCase {
  const random = new Random(seed);
  const cache = random.chance(0.3) ? { 'x-gateway-cache': 'true' } : {};
  const model = random.pick(['openai:gpt-test', 'anthropic:claude-test']);
  const sending = {
    ...plainSending,
    headers: { 'x-gateway-override-model': model, ...cache },
    pieceBytes: mebibyte,
  };
  const common = { reading: { kind: 'all' }, statuses: [200, 413, 422, 502, 503] } as const;
  if (random.chance(0.15)) return { ...common, sending, vendor: textAnswer(random) };
  const inner = random.pick([textBody, textBody, textBody, manyBody, argumentsBody])(random);
  const rest = inner.startsWith('"}') ? inner : `${inner}"}],"user":"x`;
  const bytes = Buffer.from(`{"model":"gw/balanced","messages":[{"role":"user","content":"${rest}"}`);
  return { ...common, sending: { ...sending, body: { kind: 'bytes', bytes } }, vendor: null };
}
