import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { ContentDecoder, DecoderListener } from '../../../src/adapters/upstream/content-decoder.ts';
import { decoderFor } from '../../../src/adapters/upstream/content-decoder.ts';
import { largestStreamBytes, routingTablesSchema } from '../../../src/core/tables/routing-tables.ts';
import { untilStill } from '../../harness/measure/eventually.ts';

/** A decoder and what came out of it; `over` resolves with how it ended. */
function decode(encoding: string, userAddress = false, maxBytes?: number) {
  const parts: Buffer[] = [];
  let pauses = 0;
  let decoder: ContentDecoder | null = null;
  const over = new Promise<string>((resolve) => {
    const listener: DecoderListener = {
      onData: (chunk) => parts.push(chunk),
      onEnd: () => resolve('end'),
      onProblem: resolve,
      pause: () => {
        pauses += 1;
      },
      resume: () => undefined,
    };
    decoder = decoderFor(encoding, userAddress, listener, maxBytes);
  });
  return {
    decoder: decoder as ContentDecoder | null,
    over,
    text: () => Buffer.concat(parts).toString(),
    pauses: () => pauses,
  };
}

const text = 'data: {"a":"नमस्ते"}\n\n'.repeat(1000);

describe('an answer', () => {
  test.each<[encoding: string, bytes: Buffer]>([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    [' GZIP ', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
  ])('in %s is decoded, however it is cut', async (encoding, bytes) => {
    for (const size of [1, 7, bytes.length]) {
      const { decoder, over, text: decoded } = decode(encoding);
      for (let at = 0; at < bytes.length; at += size) decoder?.write(bytes.subarray(at, at + size));
      decoder?.end();
      expect(await over).toBe('end');
      expect(decoded()).toBe(text);
    }
  });

  test.each([
    'gzip, gzip',
    'br,gzip',
    'identity, gzip',
    'zstd',
    'compress',
    'x',
    '',
    'constructor',
    '__proto__',
  ])('in %j is not decoded', (encoding) => {
    expect(decode(encoding).decoder).toBeNull();
  });

  test.each<[name: string, bytes: Buffer]>([
    ['is something else', Buffer.from('plain text, after all')],
    ['is cut', gzipSync(text).subarray(0, -10)],
    ['is damaged', Buffer.concat([gzipSync(text).subarray(0, 40), Buffer.alloc(40, 0xff)])],
  ])('that %s is no answer', async (_name, bytes) => {
    const { decoder, over } = decode('gzip');
    decoder?.write(bytes);
    decoder?.end();
    expect(await over).toBe('protocol');
  });

  test('that grows beyond all measure is stopped', async () => {
    const maxBytes = 256 * 1024 * 1024;
    const member = gzipSync(Buffer.alloc(16 * 1024 * 1024));
    const bomb = Buffer.concat(Array.from({ length: 20 }, () => member));
    let decoded = 0;
    const ended = await new Promise<string>((resolve) => {
      const decoder = decoderFor(
        'gzip',
        false,
        {
          onData: (chunk) => {
            decoded += chunk.length;
          },
          onEnd: () => resolve('end'),
          onProblem: resolve,
          pause: () => undefined,
          resume: () => undefined,
        },
        maxBytes,
      );
      decoder?.write(bomb);
      decoder?.end();
    });
    expect(ended).toBe('too-large');
    expect(decoded).toBeLessThanOrEqual(maxBytes);
  });
});

test('Brotli is for the vendors of the operator: its window is up to 16 MiB, which a few bytes can ask for', () => {
  expect(decode('br', true).decoder).toBeNull();
  expect(decode('gzip', true).decoder).not.toBeNull();
});

test('an answer of nothing but empty gzip members ends', async () => {
  const { decoder, over } = decode('gzip');
  const members = Buffer.concat(Array.from({ length: 1000 }, () => gzipSync('')));
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  for (let i = 0; i < 1000 && !isOver; i += 1) {
    decoder?.write(members);
    await new Promise(setImmediate);
  }
  expect(await over).toBe('too-large');
});

test('a destroyed decoder says nothing more, however much it had left to unpack', async () => {
  let decoded = 0;
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const first = await new Promise<number>((resolve) => {
    const decoder = decoderFor('gzip', false, {
      onData: (chunk) => {
        decoded += chunk.length;
        decoder?.destroy();
        resolve(decoded);
      },
      onEnd: () => undefined,
      onProblem: () => undefined,
      pause: () => undefined,
      resume: () => undefined,
    });
    decoder?.write(bomb);
  });
  expect(await untilStill(() => decoded, 50)).toBe(first);
});

test('the encoded side is held back while the decoder is full, and while the reader asks for it', async () => {
  const { decoder, over, pauses, text: decoded } = decode('gzip');
  decoder?.pause();
  expect(pauses()).toBe(1);
  const bytes = gzipSync(text);
  decoder?.write(bytes);
  await new Promise(setImmediate);
  expect(decoded()).toBe('');
  decoder?.resume();
  decoder?.end();
  expect(await over).toBe('end');
  expect(decoded()).toBe(text);
});

test.each([
  [-1, 'too-large'],
  [0, 'end'],
  [1, 'end'],
])('a limit of the answer’s length %i: %s', async (more, outcome) => {
  const { decoder, over } = decode('gzip', false, Buffer.byteLength(text) + more);
  decoder?.write(gzipSync(text));
  decoder?.end();
  expect(await over).toBe(outcome);
});

test('no tables admit an answer that is longer than what is decoded', () => {
  const largest = { stream_bytes: largestStreamBytes, answer_bytes: largestStreamBytes };
  const { limits } = routingTablesSchema.shape;
  for (const name of ['stream_bytes', 'answer_bytes'] as const) {
    expect(limits.safeParse({ [name]: largest[name] + 1 }).success, name).toBe(false);
  }
  expect(limits.safeParse({ stream_bytes: largestStreamBytes }).success).toBe(true);
});
