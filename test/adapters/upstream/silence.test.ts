import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { AfterNextPoll } from '../../../src/adapters/upstream/after-next-poll.ts';
import type { OpenSocket } from '../../../src/adapters/upstream/connection.ts';
import { OriginPool } from '../../../src/adapters/upstream/origin-pool.ts';
import { ReadingTurns } from '../../../src/adapters/upstream/reading-turns.ts';
import { ActiveCall } from '../../../src/adapters/upstream/upstream-call.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { listen } from './local-server.ts';

/**
 * A path that is broken says nothing on any connection, and each idle one would cost its next call a time-out. But a
 * silent call may also be a slow one whose client had a short limit: its user must not cost all others their connections.
 */

/** Steps: calls that are answered, and calls that hang until they are given up, each after so many milliseconds. */
class Vendor {
  readonly #port: number;
  readonly #pool: OriginPool;
  readonly #hanging: ServerResponse[];
  #nowMs = 1_000_000;

  private constructor(port: number, hanging: ServerResponse[]) {
    this.#port = port;
    this.#hanging = hanging;
    const kept = { keepAliveMs: 600_000, longestKeepAliveMs: 600_000, longestLifeMs: 600_000_000 };
    const settings = { ...kept, connectsAhead: true, readBytes: 65_536 };
    this.#pool = new OriginPool(
      this.#open,
      settings,
      () => this.#nowMs,
      new AfterNextPoll(),
      new ReadingTurns(),
    );
    onTestFinished(() => this.#pool.destroy());
  }

  static async start(): Promise<Vendor> {
    const hanging: ServerResponse[] = [];
    const server = createServer((request, response) => {
      if (request.url === '/answer') response.end('{}');
      else hanging.push(response);
    });
    server.keepAliveTimeout = 600_000;
    return new Vendor((await listen(server)).port, hanging);
  }

  readonly #open: OpenSocket = ({ buffer, callback }, done) => {
    const socket = connect({ port: this.#port, host: '127.0.0.1', onread: { buffer, callback } });
    socket.once('connect', () => done(null, socket, '127.0.0.1'));
    return () => socket.destroy();
  };

  get idle(): number {
    const { connected, running } = this.#pool.stats;
    return connected - running;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  #send(path: string, ended: () => void): ActiveCall {
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`;
    const listener = { onHead: () => undefined, onData: () => undefined, onEnd: ended, onFailure: ended };
    const run = new ActiveCall(head, { body: '', userAddress: false }, listener, null);
    this.#pool.take(run);
    return run;
  }

  /** So many at once, so that as many connections are idle afterwards. */
  async answered(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, () => new Promise<void>((resolve) => this.#send('/answer', resolve))),
    );
  }

  async hanging(): Promise<ActiveCall> {
    const before = this.#hanging.length;
    const run = this.#send('/hang', () => undefined);
    await eventually(async () => this.#hanging.length > before || undefined);
    return run;
  }
}

test('one call given up in silence, however late, costs nobody a connection', async () => {
  const vendor = await Vendor.start();
  await vendor.answered(5);
  for (const ms of [2_000, 60_000]) {
    const run = await vendor.hanging();
    vendor.pass(ms);
    run.abort();
    // Its own is gone.
    expect(vendor.idle).toBe(4);
    await vendor.answered(5);
  }
});

test('one given up for an answer that stopped halfway closes what was idle all the while', async () => {
  const vendor = await Vendor.start();
  await vendor.answered(5);
  const run = await vendor.hanging();
  vendor.pass(2_000);
  run.abort(true);
  expect(vendor.idle).toBe(0);
});

test('two in a row close what was idle all the while', async () => {
  const vendor = await Vendor.start();
  await vendor.answered(5);
  const runs = [await vendor.hanging(), await vendor.hanging()];
  vendor.pass(2_000);
  for (const run of runs) run.abort();
  expect(vendor.idle).toBe(0);
});

test('two with an answer between them, or beside them, do not', async () => {
  const vendor = await Vendor.start();
  await vendor.answered(5);
  const [first, second, third] = [await vendor.hanging(), await vendor.hanging(), await vendor.hanging()];
  vendor.pass(2_000);
  first?.abort();
  vendor.pass(1);
  await vendor.answered(2);
  vendor.pass(2_000);
  second?.abort();
  third?.abort();
  expect(vendor.idle).toBe(2);
});

test('short silences do not count', async () => {
  const vendor = await Vendor.start();
  await vendor.answered(5);
  const runs = [await vendor.hanging(), await vendor.hanging(), await vendor.hanging()];
  vendor.pass(900);
  for (const run of runs) run.abort();
  expect(vendor.idle).toBe(2);
});
