/** Numbers in [0, 1). */
export type Random = () => number;

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const chance = (random: Random, share: number): boolean => random() < share;

const statuses = [
  '200 OK',
  '200',
  '200 ',
  '204 No Content',
  '304 Not Modified',
  '429 Too Many Requests',
  '500 x',
  '201 é',
];
const interims = ['100 Continue', '103 Early Hints', '102 Processing'];
const plainFields = [
  'content-type: text/event-stream',
  'Content-Type:application/json',
  'x-request-id:  abc \t',
  'x-empty:',
  'set-cookie: a=1',
  'set-cookie: b=2',
  'keep-alive: timeout=5',
  'connection: keep-alive',
  'connection: close',
  'x-latin: caf\xe9',
  'retry-after: 3',
];
const oddFields = [
  'x y: 1',
  'x : 1',
  ' folded',
  ': nameless',
  'no colon',
  'x: a\rb',
  'x: a\nb',
  'x: a\0b',
  'content-length: 3',
  'content-length: 03',
  'content-length: +3',
  'content-length: 3, 3',
  'content-length: 99999999999999999999',
  'content-length: 0x3',
  'content-length:',
  'transfer-encoding: chunked',
  'transfer-encoding: gzip, chunked',
  'transfer-encoding: chunked, chunked',
  'transfer-encoding: identity',
  'Transfer-Encoding: CHUNKED',
  'transfer-encoding : chunked',
  'transfer-encoding: xchunked',
];
const versions = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'ICY',
];
const bodies = [
  '',
  'a',
  'abc',
  '{"choices":[]}',
  'data: {"x":1}\n\ndata: [DONE]\n\n',
  '\r\n\r\n',
  'x'.repeat(300),
];
const sizeTails = ['', '', '', '', ';a=b', ' ;a="b"', ' ', '\t', ';', '\n', 'g'];

function chunkedBody(random: Random, body: string): string {
  let out = '';
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + Math.floor(random() * 40));
    const digits = chance(random, 0.1) ? `00${size.toString(16)}` : size.toString(16);
    out += `${digits}${chance(random, 0.1) ? pick(random, sizeTails) : ''}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  const trailers = chance(random, 0.1)
    ? pick(random, ['x-sum: 1\r\n', 'bad trailer\r\n', ' folded\r\n', 'x: a\nb\r\n'])
    : '';
  return `${out}0\r\n${trailers}\r\n`;
}

function head(random: Random, framing: readonly string[]): string {
  const status = chance(random, 0.7) ? '200 OK' : pick(random, statuses);
  const version = chance(random, 0.9) ? 'HTTP/1.1' : pick(random, versions);
  const fields = Array.from({ length: Math.floor(random() * 4) }, () => pick(random, plainFields));
  if (chance(random, 0.15)) fields.push(pick(random, oddFields));
  const lines = [...fields, ...framing].sort(() => random() - 0.5);
  return `${[`${version} ${status}`, ...lines].join('\r\n')}\r\n\r\n`;
}

function mutated(random: Random, text: string): string {
  const at = Math.floor(random() * text.length);
  const byte = String.fromCharCode(Math.floor(random() * 256));
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + byte + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + byte + text.slice(at);
    case 3:
      return text.slice(0, at) + text.slice(at + 1);
    default:
      return (
        text.slice(0, at) + pick(random, ['\r', '\n', '\r\n', ' ', '\t', ':', '0', ',']) + text.slice(at)
      );
  }
}

/** One answer as a vendor, or a broken or hostile one, may send it; Latin-1. */
export function answerBytes(random: Random): Buffer {
  const body = pick(random, bodies);
  const kind = random();
  const framing =
    kind < 0.4 ? [`content-length: ${body.length}`] : kind < 0.8 ? ['transfer-encoding: chunked'] : [];
  const sent = kind >= 0.4 && kind < 0.8 ? chunkedBody(random, body) : body;
  const interim = chance(random, 0.1) ? `HTTP/1.1 ${pick(random, interims)}\r\nlink: x\r\n\r\n` : '';
  let text = interim + head(random, framing) + sent;
  if (chance(random, 0.1)) text += 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
  while (chance(random, 0.35)) text = mutated(random, text);
  return Buffer.from(text, 'latin1');
}
