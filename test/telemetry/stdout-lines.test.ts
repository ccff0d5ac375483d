import { describe, expect, test, vi } from 'vitest';
import type { LineStream } from '../../src/telemetry/stdout-lines.ts';
import { StdoutLines } from '../../src/telemetry/stdout-lines.ts';

/** A reader that takes what `take` asks for, when it asks. */
class Reader implements LineStream {
  writableLength = 0;
  text = '';

  on(): this {
    return this;
  }

  write(text: string): boolean {
    this.text += text;
    this.writableLength += text.length;
    return true;
  }

  take(length = this.writableLength): void {
    this.writableLength -= Math.min(length, this.writableLength);
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
    lines.write(`${'x'.repeat(20_000)}\n`);
    expect(reader.text).toHaveLength(20_005);
  });

  test('are dropped beyond 16 MiB that nobody reads, but not those that exist nowhere else', () => {
    const reader = new Reader();
    const lines = new StdoutLines(reader);
    const line = 'x'.repeat(1024 * 1024);
    const kept = Array.from({ length: 40 }, () => lines.write(line)).filter(Boolean).length;
    expect(kept).toBe(17);
    lines.print('row\n');
    expect(reader.text.endsWith('row\n')).toBe(true);
    reader.take();
    expect(lines.write('again\n')).toBe(true);
  });

  test('are waited for at the end while the reader takes some', async () => {
    vi.useFakeTimers();
    try {
      const reader = new Reader();
      const lines = new StdoutLines(reader);
      lines.write('abc');
      let closed = false;
      const closing = lines.close().then(() => {
        closed = true;
      });
      for (let left = 3; left > 0; left -= 1) {
        await vi.advanceTimersByTimeAsync(900);
        expect(closed).toBe(false);
        reader.take(1);
      }
      await vi.advanceTimersByTimeAsync(20);
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
      const closing = lines.close();
      await vi.advanceTimersByTimeAsync(1100);
      await closing;
    } finally {
      vi.useRealTimers();
    }
  });
});
