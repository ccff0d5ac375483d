import { describe, expect, test, vi } from 'vitest';
import type { LineStream } from '../../src/telemetry/stdout-lines.ts';
import { StdoutLines } from '../../src/telemetry/stdout-lines.ts';

/** A reader that takes when it is told to; until then what was written waits, as in a full pipe. */
class Reader implements LineStream {
  writableLength = 0;
  text = '';
  /** Of each write. */
  readonly lengths: number[] = [];
  #left: ((error?: Error) => void)[] = [];

  on(): this {
    return this;
  }

  write(text: string, left: (error?: Error) => void): boolean {
    this.text += text;
    this.lengths.push(text.length);
    this.writableLength += text.length;
    this.#left.push(left);
    return true;
  }

  /** Takes what it was written, and nothing of what it is written for that. */
  take(error?: Error): void {
    this.writableLength = 0;
    for (const left of this.#left.splice(0)) left(error);
  }

  takeAll(): void {
    while (this.writableLength > 0) this.take();
  }
}

describe('lines for stdout', () => {
  test('wait for a block, and are written by a flush', () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    lines.write('one\n');
    expect(reader.text).toBe('');
    lines.flush();
    expect(reader.text).toBe('one\n');
    reader.take();
    lines.write(`${'x'.repeat(20_000)}\n`);
    expect(reader.text).toHaveLength(20_005);
  });

  test('are handed on one block after the other, whatever waits behind it', () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    const line = `${'x'.repeat(999)}\n`;
    for (let index = 0; index < 100; index += 1) lines.write(line);
    expect(reader.lengths).toEqual([17_000]);
    reader.take();
    expect(reader.lengths).toEqual([17_000, 17_000]);
    reader.takeAll();
    expect(reader.lengths).toEqual([17_000, 17_000, 17_000, 17_000, 17_000, 15_000]);
  });

  test('are dropped beyond 16 MiB that nobody reads, those that exist nowhere else beyond twice as much', () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    const line = 'x'.repeat(1024 * 1024);
    const ended: boolean[] = [];
    for (let index = 0; index < 40; index += 1) lines.write(line, (isTaken) => ended.push(isTaken));
    expect(ended).toEqual(Array(23).fill(false));
    let left = 0;
    for (let index = 0; index < 40; index += 1) lines.print(line, () => (left += 1));
    expect(left).toBe(0);
    reader.takeAll();
    expect(left).toBe(16);
    expect(reader.text).toHaveLength(33 * line.length);
    expect(ended.filter(Boolean)).toHaveLength(17);
    lines.write('again\n');
    lines.flush();
    expect(reader.text).toMatch(/again\n$/);
  });

  test('of which somebody wants to know are told once what became of them', () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    const told: string[] = [];
    const tell = (name: string) => (isTaken: boolean) => told.push(`${name} ${isTaken}`);
    lines.write('one\n', tell('one'));
    lines.write('nobody asks\n');
    lines.flush();
    lines.write('two\n', tell('two'));
    expect(told).toEqual([]);
    reader.take();
    expect(told).toEqual(['one true']);
    reader.take(new Error('ENOSPC'));
    expect(told).toEqual(['one true', 'two false']);
  });

  test('count as left when the reader has them, and never when it is gone', async () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    const told: string[] = [];
    lines.print('one\n', () => told.push('one'));
    lines.print('two\n', () => told.push('two'));
    const first = lines.untilLeft();
    expect(told).toEqual([]);
    reader.take();
    expect(told).toEqual(['one']);
    reader.take();
    expect(told).toEqual(['one', 'two']);
    expect(await first).toBe(true);
    lines.print('three\n', () => told.push('three'));
    const second = lines.untilLeft();
    reader.take(new Error('EPIPE'));
    expect(await second).toBe(false);
    expect(told).toEqual(['one', 'two']);
  });

  test('are waited for at the end while the reader takes some, however long it takes', async () => {
    vi.useFakeTimers();
    try {
      const reader = new Reader();
      const lines = new StdoutLines(reader);
      for (let block = 0; block < 20; block += 1) lines.write('x'.repeat(20_000));
      let closed = false;
      const closing = lines.close().then(() => {
        closed = true;
      });
      for (let block = 0; block < 20; block += 1) {
        await vi.advanceTimersByTimeAsync(900);
        expect(closed).toBe(false);
        reader.take();
      }
      await closing;
    } finally {
      vi.useRealTimers();
    }
  });

  test('are given up at the end after a second in which the reader took nothing', async () => {
    vi.useFakeTimers();
    try {
      const lines = new StdoutLines(new Reader());
      lines.write('abc');
      const left = lines.untilLeft();
      await vi.advanceTimersByTimeAsync(1000);
      expect(await left).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  test('are given up when the process has to end, though the reader takes some', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
    });
    try {
      const reader = new Reader();
      const lines = new StdoutLines(reader);
      for (let block = 0; block < 20; block += 1) lines.write('x'.repeat(20_000));
      lines.endBy(performance.now() + 3_500);
      const left = lines.untilLeft();
      for (let block = 0; block < 4; block += 1) {
        await vi.advanceTimersByTimeAsync(900);
        reader.take();
      }
      expect(await left).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });
});
