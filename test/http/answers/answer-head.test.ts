/** The head of a whole answer is Node's own, whoever writes it. */
import { afterEach, expect, test } from 'vitest';
import { writeAnswerHead } from '../../../src/http/answers/answer-head.ts';
import { headText } from '../../../src/http/answers/head-text.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;

afterEach(() => edge.close());

const headers = { 'x-request-id': 'r', 'content-type': 'application/json', 'content-length': '2' };
const closing = { ...headers, connection: 'close' };

async function answersOf(request: (path: string) => string): Promise<string[]> {
  edge = await startEdge((scope) => {
    for (const [kind, given] of Object.entries({ kept: headers, closed: closing })) {
      scope.get(`/node/${kind}`, (_request, reply) => {
        reply.hijack();
        reply.raw.writeHead(200, given).end('{}');
      });
      scope.get(`/ours/${kind}`, (_request, reply) => {
        reply.hijack();
        writeAnswerHead(reply.raw, given);
        reply.raw.end('{}');
      });
    }
  });
  const answers: string[] = [];
  for (const path of ['/node/kept', '/ours/kept', '/node/closed', '/ours/closed']) {
    const client = edge.connect(request(path), head({ connection: 'close' }, `GET ${path}`)).read();
    await client.closed;
    answers.push(client.text.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/gm, 'Date\r'));
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
  const [node, ours, nodeClosing, oursClosing] = await answersOf(request);
  expect(ours).toBe(node);
  expect(oursClosing).toBe(nodeClosing);
  expect(node).toContain('\r\n\r\n{}');
});

test.each(['a\nb', 'a\r\nset-cookie: x', 'a\r'])('a value %j is no header', (value) => {
  expect(() => headText({ 'x-request-id': value }, 'now', 4)).toThrow('x-request-id has two lines');
});
