/** The head of an answer is Node's own, whoever writes it. */
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { StreamHead, writeAnswerHead } from '../../../src/http/answers/answer-head.ts';
import { headerLines } from '../../../src/http/answers/head-text.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;

afterEach(() => edge.close());

const body = { 'x-request-id': 'r', 'content-type': 'application/json' };
const whole = { ...body, 'content-length': '2' };
const closing = { connection: 'close' };
const given = {
  kept: whole,
  closed: { ...whole, ...closing },
  'kept-stream': body,
  'closed-stream': { ...body, ...closing },
  'last-stream': { ...body, ...closing },
};
type Kind = keyof typeof given;
const kinds = Object.keys(given) as Kind[];

/** Whoever closes, the server or its headers. */
function writeStream(response: ServerResponse, kind: Kind): boolean {
  const isLast = kind === 'last-stream';
  return new StreamHead(isLast ? body : given[kind]).write(response, isLast);
}

/** The answer with its fields in order: where Node says that chunks come is no matter. */
function sorted(answer: string): string {
  const [lines = '', ...rest] = answer.split('\r\n\r\n');
  return [lines.toLowerCase().split('\r\n').toSorted().join('\r\n'), ...rest].join('\r\n\r\n');
}

async function answersOf(request: (path: string) => string): Promise<Record<string, string>> {
  edge = await startEdge((scope) => {
    for (const kind of kinds) {
      scope.get(`/node/${kind}`, (_request, reply) => {
        reply.hijack();
        reply.raw.writeHead(200, given[kind]);
        reply.raw.write('{');
        reply.raw.end('}');
      });
      scope.get(`/ours/${kind}`, (_request, reply) => {
        reply.hijack();
        const isChunked = kind.endsWith('stream') && writeStream(reply.raw, kind);
        if (!kind.endsWith('stream')) writeAnswerHead(reply.raw, given[kind]);
        reply.raw.write(isChunked ? '1\r\n{\r\n' : '{');
        reply.raw.end(isChunked ? '1\r\n}\r\n0\r\n\r\n' : '}');
      });
    }
  });
  const answers: Record<string, string> = {};
  for (const path of kinds.flatMap((kind) => [`/node/${kind}`, `/ours/${kind}`])) {
    const client = edge.connect(request(path), head({ connection: 'close' }, `GET ${path}`)).read();
    await client.closed;
    const date = /^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/gm;
    answers[path] = sorted(client.text.replace(date, 'Date\r'));
  }
  return answers;
}

test.each([
  ['HTTP/1.1', (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ['HTTP/1.0', (path: string) => `GET ${path} HTTP/1.0\r\nhost: a\r\n\r\n`],
  [
    'HTTP/1.0 that keeps',
    (path: string) => `GET ${path} HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n`,
  ],
  ['HTTP/1.1 that closes', (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`],
  [
    'a client that waits for a 100',
    (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n`,
  ],
])('to %s', async (_name, request) => {
  const answers = await answersOf(request);
  for (const kind of kinds) {
    expect(answers[`/ours/${kind}`], kind).toBe(answers[`/node/${kind}`]);
    expect(answers[`/ours/${kind}`], kind).toMatch(/\r\n\r\n(?:\{\}$|1\r\n\{)/);
  }
});

test.each(['a\nb', 'a\r\nset-cookie: x', 'a\r'])('a value %j is no header', (value) => {
  expect(() => headerLines({ 'x-request-id': value })).toThrow('x-request-id has two lines');
});
