import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { ReadOnlyServer } from '../../../src/adapters/postgres/host-choice.ts';
import { createPool, isAway } from '../../../src/adapters/postgres/pool.ts';
import { ConflictError } from '../../../src/core/errors.ts';

const coded = (code: string, message = code, more: object = {}): Error =>
  Object.assign(new Error(message), { code, ...more });

/** What a call throws. */
async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

test.each([
  coded('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'),
  coded('ECONNRESET', 'Client network socket disconnected before secure TLS connection was established'),
  coded('EPIPE', 'This socket has been ended by the other party'),
  coded('ETIMEDOUT', 'read ETIMEDOUT'),
  coded('EHOSTUNREACH'),
  coded('ENETUNREACH'),
  coded('EADDRNOTAVAIL'),
  coded('EMFILE', 'connect EMFILE 10.0.0.1:5432'),
  coded('ENOTFOUND', 'getaddrinfo ENOTFOUND db'),
  coded('EAI_AGAIN', 'getaddrinfo EAI_AGAIN db'),
  coded('ENOENT', 'connect ENOENT /run/.s.PGSQL.5432', { syscall: 'connect' }),
  coded('EPERM', 'connect EPERM 10.0.0.1:5432', { syscall: 'connect' }),
  coded('EPROTO'),
  coded('ERR_SSL_WRONG_VERSION_NUMBER'),
  coded('ERR_OSSL_EVP_UNSUPPORTED'),
  coded('ERR_TLS_CERT_ALTNAME_INVALID'),
  coded('CERT_HAS_EXPIRED'),
  coded('DEPTH_ZERO_SELF_SIGNED_CERT'),
  coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
  coded('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed'),
  new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]),
  new Error('timeout exceeded when trying to connect'),
  new Error('timeout expired'),
  new Error('Query read timeout'),
  new Error('Connection terminated'),
  new Error('Connection terminated unexpectedly'),
  new Error('Connection terminated due to connection timeout'),
  new Error('Client has encountered a connection error and is not queryable'),
  new Error('Client was closed and is not queryable'),
  new Error('The server does not support SSL connections'),
  new Error('There was an error establishing an SSL connection'),
  new ReadOnlyServer(),
])('%s: the database is away', (error) => {
  expect(isAway(error)).toBe(true);
});

/** Errors of Node whose codes begin as those of sockets and TLS do. */
const nodeErrors = [
  ['a wrong type of argument', () => Buffer.from(1 as unknown as string)],
  ['a value out of range', () => Buffer.alloc(1).writeUInt8(256, 0)],
  ['a URL that is none', () => new URL('nowhere')],
  ['a port that is none', () => createServer().listen(-1)],
  ['a file that is not there', () => readFile('/nowhere/to/be/found')],
  ['a folder read as a file', () => readFile('/')],
  ['a wrong option', () => lookup('localhost', { family: 9 })],
] as const;

test.each(nodeErrors)('%s is a bug of ours, not an outage', async (_, work) => {
  const error = await thrownBy(work);
  expect((error as NodeJS.ErrnoException).code).toMatch(/^E/);
  expect(isAway(error)).toBe(false);
});

test.each([
  ...['EINVAL', 'EBADF', 'EEXIST', 'ENOSPC', 'EISDIR', 'ENOENT', 'EACCES', 'EADDRINUSE', 'ERR_ASSERTION'],
  ...['ERR_INVALID_ARG_TYPE', 'ERR_TLS_INVALID_CONTEXT', 'ERR_INTERNAL_ASSERTION', 'ERR_HTTP_HEADERS_SENT'],
  ...['CERTAINLY_NOT', 'XERR_SSL_NO', 'ECONNREFUSED_NOT'],
])('%s is no code of an outage', (code) => {
  expect(isAway(coded(code, 'connect timeout socket ended'))).toBe(false);
});

test.each([
  new TypeError("Cannot read properties of undefined (reading 'connectedAt')"),
  new TypeError('socket.write is not a function'),
  new ReferenceError('timeout is not defined'),
  new Error('the log has ended'),
  new Error('Client has already been connected. You cannot reuse a client.'),
  new Error('Cannot use a pool after calling end on the pool'),
  new Error('Release called on client which has already been released to the pool.'),
  new AggregateError([], 'connect failed'),
  new AggregateError([coded('ECONNREFUSED'), new TypeError('x is not a function')]),
  new ConflictError('taken', 'email'),
  'Connection terminated',
  undefined,
])('%s is not taken for an outage', (error) => {
  expect(isAway(error)).toBe(false);
});

test('what really comes of servers that are not there, do not answer as Postgres or end at once is an outage', async () => {
  let answer = '';
  const server = createServer((socket) => socket.once('data', () => socket.end(answer)));
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  const failureOf = async (url: string): Promise<unknown> => {
    const pool = createPool(url, 1);
    const error = await thrownBy(() => pool.query('SELECT 1'));
    await pool.end();
    return error;
  };
  const urls = [
    'postgres://u:p@127.0.0.1:1/none',
    'postgres://u:p@nobody.invalid/none',
    'postgres://u:p@/none?host=/nowhere',
    `postgres://u:p@127.0.0.1:${port}/none`,
    `postgres://u:p@127.0.0.1:${port}/none?sslmode=require`,
  ];
  for (answer of ['', 'N', 'E', 'S', 'Sno handshake at all']) {
    for (const url of urls.slice(3)) {
      if (answer.length > 0 && !url.includes('sslmode')) continue;
      const error = await failureOf(url);
      expect({ answer, url, error, away: isAway(error) }).toMatchObject({ away: true });
    }
  }
  for (const url of urls.slice(0, 3)) {
    const error = await failureOf(url);
    expect({ url, error, away: isAway(error) }).toMatchObject({ away: true });
  }
  await new Promise((closed) => server.close(closed));
});
