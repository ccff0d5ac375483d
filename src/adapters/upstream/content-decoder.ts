import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { largestStreamBytes } from '../../core/tables/routing-tables.ts';
import { TimedTurns } from '../../timed-turns.ts';
import { longestReadingMs } from './reading-turns.ts';

/** Codings make bytes fewer: beyond this and twice what came out, the rest is padding without an end. */
const maxPaddingBytes = 1024 * 1024;

/** Of all decoders of the process: what they give out comes past `ReadingTurns`, which knows packed bytes alone. */
const allTurns = new TimedTurns(longestReadingMs);

export interface DecoderListener {
  onData(chunk: Buffer): void;
  onEnd(): void;
  onProblem(kind: 'protocol' | 'too-large'): void;
  /** Of the encoded side. */
  pause(): void;
  resume(): void;
}

export interface ContentDecoder {
  write(chunk: Buffer): void;
  end(): void;
  pause(): void;
  resume(): void;
  /** Nothing comes out of it afterwards, and its memory is given back. */
  destroy(): void;
}

/** A map, since the vendor names the key: `constructor` is no coding. */
const makers: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
]);

/** A few bytes can ask for a window of 16 MiB: not for servers that anybody may name. */
const vendorMakers: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ...makers,
  ['br', createBrotliDecompress],
]);

/** What says that nothing is coded: proxies write `none` to keep others from compressing a stream. */
const plainCodings: ReadonlySet<string> = new Set(['identity', 'none', '']);

/** By its `content-encoding`, if it has one. */
export const isCoded = (encoding: string): boolean => !plainCodings.has(encoding.trim().toLowerCase());

/**
 * Decodes an answer that a vendor compressed although identity was asked for. One layer only: null for an
 * unknown coding or a chain of them, which no vendor sends and bombs are made of, and for Brotli from a server
 * that a user named. The attempt's own limits are those of its tables and destroy the decoder; `maxDecodedBytes` is the
 * last one, which no tables reach.
 */
export function decoderFor(
  encoding: string,
  userAddress: boolean,
  listener: DecoderListener,
  maxDecodedBytes = largestStreamBytes,
  turns: Pick<TimedTurns, 'run'> = allTurns,
): ContentDecoder | null {
  const transform = (userAddress ? makers : vendorMakers).get(encoding.trim().toLowerCase())?.();
  if (transform === undefined) return null;
  let encoded = 0;
  let decoded = 0;
  let paused = false;
  /** Of no use any more: a stream that has ended is destroyed as well, while its last bytes may wait. */
  let isGone = false;
  /** Nothing more is unpacked while what was has to wait for its turn. */
  const hand = (chunk: Buffer): void => {
    const isDone = turns.run(() => {
      if (isGone) return;
      listener.onData(chunk);
      if (!paused) transform.resume();
    });
    if (!isDone) transform.pause();
  };
  transform.on('data', (chunk: Buffer) => {
    decoded += chunk.length;
    if (decoded <= maxDecodedBytes) hand(chunk);
    else transform.destroy(new RangeError('decoded size'));
  });
  transform.on('end', () =>
    turns.run(() => {
      if (!isGone) listener.onEnd();
    }),
  );
  transform.on('error', (error) => {
    isGone = true;
    listener.onProblem(error instanceof RangeError ? 'too-large' : 'protocol');
  });
  transform.on('drain', () => {
    if (!paused) listener.resume();
  });
  return {
    write(chunk) {
      if (transform.destroyed) return;
      encoded += chunk.length;
      if (encoded > 2 * decoded + maxPaddingBytes) transform.destroy(new RangeError('encoded size'));
      else if (!transform.write(chunk)) listener.pause();
    },
    end() {
      if (!transform.destroyed) transform.end();
    },
    pause() {
      paused = true;
      transform.pause();
      listener.pause();
    },
    resume() {
      paused = false;
      transform.resume();
      listener.resume();
    },
    destroy() {
      isGone = true;
      transform.destroy();
    },
  };
}
