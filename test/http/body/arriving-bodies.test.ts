/** Every way in which a body can come in, stop or be left, and what it takes of the process meanwhile. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { bodyCost } from '../../../src/http/body/body-cost.ts';
import { mostTinyChunks } from '../../../src/http/body/measured-message.ts';
import { bodyProgressMs } from '../../../src/http/body/read-body.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Edge } from '../edge.ts';
import { chunked, head, lastChunk, startEdge } from '../edge.ts';

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

let edge: Edge;
/** Handlers wait here while a test wants them to. */
let hold: Promise<void> = Promise.resolve();
let entered = 0;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  hold = Promise.resolve();
  entered = 0;
  edge = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: 20 * mebibyte }, async (request) => {
      entered += 1;
      await hold;
      return { length: JSON.stringify(request.body).length };
    });
  });
});

afterEach(async () => {
  vi.useRealTimers();
  await edge.close();
});

/** What the head of one of these requests costs at most. */
const headBytes = 4 * kibibyte;

/** Beside the heads of so many requests. */
const heldIs = (bytes: number, requests = bytes === 0 ? 0 : 1) =>
  eventually(async () => {
    const heads = edge.life.bodies.heldBytes - bytes;
    return (heads >= 0 && heads <= requests * headBytes) || undefined;
  }, 20_000);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A JSON text of exactly `bytes`. */
const jsonOf = (bytes: number) => Buffer.from(`"${'z'.repeat(bytes - 2)}"`);

async function post(fields: Record<string, string | number>, ...parts: (string | Buffer)[]): Promise<string> {
  const client = edge.connect(head({ connection: 'close', ...fields }), ...parts).read();
  await client.closed;
  return client.text;
}

describe('a body', () => {
  test.each([
    [1, mostTinyChunks],
    [17, 80_000],
    [4_096, 80_000],
    [65_536, 80_000],
  ])('in chunks of %i bytes is taken whole', async (size, bytes) => {
    const text = await post({ 'transfer-encoding': 'chunked' }, chunked(jsonOf(bytes), size), lastChunk);
    expect(text).toContain(`{"length":${bytes}}`);
    expect(edge.life.bodies.heldBytes).toBe(0);
  });

  test('in any pieces, declared or not, is what was sent', async () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 40 }), fc.boolean(), async (value, size, declared) => {
        const body = Buffer.from(JSON.stringify(value));
        const answer = declared
          ? await post({ 'content-length': body.length }, body.subarray(0, size), body.subarray(size))
          : await post({ 'transfer-encoding': 'chunked' }, chunked(body, size), lastChunk);
        expect(answer).toContain(`{"length":${JSON.stringify(value).length}}`);
      }),
      { numRuns: 40 },
    );
  });

  test('takes of the budget what has arrived, not what was declared', async () => {
    const client = edge.connect(head({ 'content-length': 20 * mebibyte }));
    client.socket.write(Buffer.alloc(100_000, 'z'));
    await heldIs(100_000);
    client.socket.destroy();
    await heldIs(0);
  });

  test('of another is taken beside twenty that were declared and never sent', async () => {
    const idle = Array.from({ length: 20 }, () => edge.connect(head({ 'content-length': 20 * mebibyte })));
    expect(await post({ 'content-length': mebibyte }, jsonOf(mebibyte))).toContain('200 OK');
    for (const { socket } of idle) socket.destroy();
    expect(edge.shed).toEqual([]);
  });

  test('costs its bytes in memory, however small its chunks', async () => {
    const bytes = mostTinyChunks;
    const sent = chunked(Buffer.alloc(bytes, 'z'), 1);
    const before = usedBytes();
    const clients = Array.from({ length: 50 }, () =>
      edge.connect(head({ 'transfer-encoding': 'chunked' }), sent),
    );
    await heldIs(clients.length * bytes, clients.length);
    // At 545 bytes of memory for each it would be a hundred.
    expect(usedBytes() - before).toBeLessThan(10 * mebibyte);
    for (const { socket } of clients) socket.destroy();
    await heldIs(0);
  });
});

describe('nothing is held any more', () => {
  const large = 200 * kibibyte;
  const half = Buffer.alloc(large / 2, 'z');

  test.each<[string, Record<string, string | number>, (string | Buffer)[]]>([
    ['with a head only', { 'content-length': large }, []],
    ['with half a body', { 'content-length': large }, [half]],
    ['with half a body in chunks', { 'transfer-encoding': 'chunked' }, [chunked(half)]],
    ['with the whole body', { 'content-length': large }, [jsonOf(large)]],
    ['with a small body', { 'content-length': 5 }, ['"123"']],
  ])('when a client leaves while its account is looked up, %s', async (_name, fields, parts) => {
    for (let round = 0; round < 5; round += 1) {
      const client = edge.connect(head({ 'x-wait': '1', ...fields }), ...parts);
      const over = edge.ended.length;
      await eventually(async () => edge.life.requestCount === 1 || undefined);
      client.socket.destroy();
      // With bytes unread, a socket tells only once they are read that its other end is closed.
      if (parts.length === 0) await eventually(async () => edge.ended.length > over || undefined);
      edge.letIn();
      await eventually(async () => edge.life.requestCount === 0 || undefined);
      await new Promise(setImmediate);
      expect(edge.life.bodies.heldBytes).toBe(0);
    }
  });

  test('when a client leaves in its body', async () => {
    const client = edge.connect(head({ 'content-length': large }), half);
    await heldIs(half.length);
    client.socket.destroy();
    await heldIs(0);
  });

  test('when a client leaves while it is served', async () => {
    let go: () => void = () => undefined;
    hold = new Promise((resolve) => {
      go = resolve;
    });
    const client = edge.connect(head({ 'content-length': large }), jsonOf(large));
    await heldIs(bodyCost(jsonOf(large), 0, false));
    await eventually(async () => entered === 1 || undefined);
    client.socket.destroy();
    await heldIs(0);
    go();
  });

  test.each([
    [
      'refused as too large',
      { 'transfer-encoding': 'chunked' },
      [chunked(Buffer.alloc(21 * mebibyte, 'z'), 65_536)],
      413,
    ],
    ['no JSON', { 'content-length': large }, [Buffer.alloc(large, 'z')], 422],
    ['no UTF-8', { 'content-length': large }, [Buffer.alloc(large, 0xff)], 422],
  ])('when a body is %s', async (_name, fields, parts, status) => {
    const client = edge.connect(head(fields), ...parts).read();
    await eventually(async () => client.text.includes(`HTTP/1.1 ${status}`) || undefined);
    expect(edge.life.bodies.heldBytes).toBe(0);
    client.socket.destroy();
  });

  test('when those are left that were sent behind another, of which only the first is worked on', async () => {
    hold = new Promise(() => undefined);
    const first = `${head({ 'content-length': 5 })}"123"`;
    const client = edge.connect(first, first, first);
    await eventually(async () => entered === 1 || undefined);
    await heldIs(bodyCost(Buffer.from('"123"'), 0, false));
    client.socket.destroy();
    await heldIs(0);
    expect(edge.life.requestCount).toBe(0);
    expect(entered).toBe(1);
  });
});

describe('a body that stops', () => {
  test.each([
    ['declared, nothing came', { 'content-length': 10 }, []],
    ['declared, half of it came', { 'content-length': mebibyte }, [Buffer.alloc(100_000, 'z')]],
    ['in chunks', { 'transfer-encoding': 'chunked' }, [chunked(Buffer.alloc(10, 'z'))]],
  ])('is refused with 408, and forgotten: %s', async (_name, fields, parts) => {
    const client = edge.connect(head(fields), ...parts).read();
    const bytes = parts.length === 0 ? 0 : 10;
    await eventually(
      async () => (edge.life.requestCount === 1 && edge.life.bodies.heldBytes >= bytes) || undefined,
    );
    vi.advanceTimersByTime(bodyProgressMs);
    await new Promise(setImmediate);
    vi.advanceTimersByTime(bodyProgressMs);
    await eventually(async () => client.text.includes('request_timeout') || undefined);
    expect(client.text).toContain('HTTP/1.1 408');
    expect(edge.life.bodies.heldBytes).toBe(0);
    client.socket.destroy();
  });

  test('is not one that only comes slowly', async () => {
    const body = jsonOf(20);
    const client = edge.connect(head({ 'content-length': 20 })).read();
    const headAlone = await eventually(async () => edge.life.bodies.heldBytes || undefined);
    for (let at = 0; at < 20; at += 1) {
      client.socket.write(body.subarray(at, at + 1));
      const held = at + 1 === 20 ? 0 : headAlone + at + 1;
      await eventually(async () => edge.life.bodies.heldBytes === held || undefined);
      vi.advanceTimersByTime(bodyProgressMs);
    }
    await eventually(async () => client.text.includes('{"length":20}') || undefined);
    client.socket.destroy();
  });
});

test('the head of a request counts while its body is on its way', async () => {
  const fields = Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`a${at}`, 'v'.repeat(150)]));
  const large = head({ 'content-length': 10, ...fields });
  const client = edge.connect(large);
  await eventually(async () => edge.life.bodies.heldBytes > large.length || undefined);
  client.socket.destroy();
  await heldIs(0);
});

describe('shares', () => {
  test('one who sends all the large bodies it can leaves room for another', async () => {
    hold = new Promise(() => undefined);
    const size = 4 * mebibyte;
    const body = jsonOf(size);
    const hogs = Array.from({ length: 60 }, () =>
      edge.connect(head({ 'x-user': 'hog', 'content-length': size }), body).read(),
    );
    await eventually(async () => entered + edge.shed.length >= 60 || undefined, 20_000);
    expect(edge.shed.length).toBeGreaterThan(0);
    const before = entered;
    const other = edge.connect(head({ 'x-user': 'other', 'content-length': size }), body).read();
    await eventually(async () => entered === before + 1 || undefined, 20_000);
    for (const { socket } of [...hogs, other]) socket.destroy();
    await heldIs(0);
  });

  test('a crowd of small bodies in small chunks is bounded, whoever sends them', async () => {
    const sent = chunked(Buffer.alloc(60 * kibibyte, 'z'), 512);
    const clients = Array.from({ length: 1_000 }, (_, index) =>
      edge.connect(head({ 'x-user': `u${index % 5}`, 'transfer-encoding': 'chunked' }), sent).read(),
    );
    const refused = () => clients.filter(({ text }) => text.includes('overloaded')).length;
    await eventually(async () => refused() >= 500 || undefined, 30_000);
    expect(edge.life.bodies.heldBytes).toBeLessThanOrEqual(edge.life.bodies.limitBytes);
    for (const { socket } of clients) socket.destroy();
    await heldIs(0);
  });
});
