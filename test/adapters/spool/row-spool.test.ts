import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { appendFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Disk, DiskHangs, diskLimitMs } from '../../../src/adapters/spool/disk.ts';
import { ReplayProgress } from '../../../src/adapters/spool/replay-progress.ts';
import type { OnBroken } from '../../../src/adapters/spool/row-spool.ts';
import { RowSpool } from '../../../src/adapters/spool/row-spool.ts';
import { decodeSpoolLine, encodeSpoolLine } from '../../../src/adapters/spool/spool-line.ts';
import { tryLock } from '../../../src/adapters/spool/spool-lock.ts';
import type { SpoolBatch } from '../../../src/adapters/spool/spool-segment.ts';
import { abandonedSpools, openSpool } from '../../../src/adapters/spool/spool-slots.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, rm: vi.fn(real.rm), appendFile: vi.fn(real.appendFile) };
});

const maxBytes = 1024 * 1024;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'row-spool-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

test('a start on a disk that hangs ends in time, and names the slot', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  onTestFinished(() => void vi.useRealTimers());
  const opening = vi.spyOn(RowSpool, 'openSlot').mockReturnValue(new Promise(() => {}));
  onTestFinished(() => opening.mockRestore());
  const given = expect(openSpool({ directory, maxBytes })).rejects.toThrow(
    /slot-0: The disk has not answered/,
  );
  await vi.advanceTimersByTimeAsync(diskLimitMs + 1);
  await given;
  expect(opening).toHaveBeenCalledTimes(1);
});

function json(number: number): string {
  return JSON.stringify({ number, text: 'é'.repeat(number % 7) });
}

const unbroken = (path: string): never => expect.unreachable(path);

async function take(
  spool: RowSpool,
  onBroken: OnBroken = unbroken,
  stuckToo = false,
): Promise<{ rows: string[]; bad: number }> {
  const rows: string[] = [];
  let bad = 0;
  await spool.replay(
    async (batch) => {
      rows.push(...batch.rows);
      bad += batch.bad.length;
      await spool.setAside(batch.bad);
    },
    onBroken,
    stuckToo,
  );
  return { rows, bad };
}

async function rowsOf(spool: RowSpool, onBroken: OnBroken): Promise<string[]> {
  const rows: string[] = [];
  for await (const batch of spool.rows(onBroken)) rows.push(...batch);
  return rows;
}

/** Rows of all spools that dead processes left, and the paths that could not be read. */
async function takeAbandoned(progress = new ReplayProgress()): Promise<{ rows: string[]; broken: string[] }> {
  const rows: string[] = [];
  const broken: string[] = [];
  const onBroken = (path: string): number => broken.push(relative(directory, path));
  for await (const spool of abandonedSpools({ directory, maxBytes }, onBroken, progress, new Disk())) {
    rows.push(...(await take(spool, onBroken)).rows);
    await spool.close();
  }
  return { rows, broken };
}

/** As a dead process left it. */
function leaveSegment(bytes: Buffer | string, slot = 0): void {
  const folder = join(directory, `slot-${slot}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '0000000001.ndjson'), bytes);
}

test('a slot that cannot be read stays free for the next who tries', async () => {
  mkdirSync(join(directory, 'slot-0'));
  const segment = join(directory, 'slot-0', '0000000001.ndjson');
  symlinkSync(join(directory, 'nowhere'), segment);
  const other = await openSpool({ directory, maxBytes });
  expect(readdirSync(directory)).toEqual(['slot-0', 'slot-1']);
  await other.close();
  expect(await takeAbandoned()).toEqual({ rows: [], broken: ['slot-0'] });
  rmSync(segment);
  const spool = await openSpool({ directory, maxBytes });
  await spool.append(json(1));
  await spool.close();
  expect((await takeAbandoned()).rows).toEqual([json(1)]);
  expect(readdirSync(join(directory, 'slot-0'))).toEqual(['lock']);
});

test.each([
  {
    name: 'a slot whose segment leads nowhere',
    leave: () => {
      mkdirSync(join(directory, 'slot-0'));
      symlinkSync(join(directory, 'nowhere'), join(directory, 'slot-0', '0000000001.ndjson'));
    },
    broken: ['slot-0'],
  },
  {
    name: 'a segment that is none',
    leave: () => {
      mkdirSync(join(directory, 'slot-0', '0000000001.ndjson'), { recursive: true });
      writeFileSync(join(directory, 'slot-0', '0000000002.ndjson'), encodeSpoolLine(json(2)));
    },
    broken: ['slot-0/0000000001.ndjson'],
  },
])('$name holds up no other', async ({ leave, broken }) => {
  leave();
  leaveSegment(encodeSpoolLine(json(3)), 1);
  const found = await takeAbandoned();
  expect(found.broken).toEqual(broken);
  expect(found.rows.at(-1)).toBe(json(3));
  expect(await takeAbandoned()).toEqual({ rows: [], broken });
});

/** An own segment with a row that was not taken. */
async function openWithRow(): Promise<RowSpool> {
  const spool = await openSpool({ directory, maxBytes });
  await spool.append(json(1));
  return spool;
}

describe('a segment that somebody removes is told of once, with how much was in it', () => {
  const segment = () => join(directory, 'slot-0', '0000000001.ndjson');

  test.each<[string, () => Promise<RowSpool>]>([
    [
      'of a dead process',
      async () => {
        leaveSegment(encodeSpoolLine(json(1)));
        const spool = await openSpool({ directory, maxBytes });
        rmSync(segment());
        return spool;
      },
    ],
    [
      'that was written, and is not any more',
      async () => {
        const spool = await openWithRow();
        rmSync(segment());
        return spool;
      },
    ],
    [
      'of which an append finds that it is gone',
      async () => {
        const spool = await openWithRow();
        rmSync(segment());
        expect(await spool.append(json(2))).toBe(false);
        return spool;
      },
    ],
    [
      'of which an append finds that it is gone, before the next one is written',
      async () => {
        const spool = await openWithRow();
        rmSync(segment());
        expect(await spool.append(json(2))).toBe(false);
        await spool.retry();
        return spool;
      },
    ],
    [
      'with its folder',
      async () => {
        const spool = await openWithRow();
        rmSync(join(directory, 'slot-0'), { recursive: true });
        expect(await spool.append(json(2))).toBe(false);
        await spool.retry();
        return spool;
      },
    ],
  ])('%s', async (_, open) => {
    for (const look of [take, rowsOf]) {
      const spool = await open();
      const told = new Set<string>();
      const onBroken: OnBroken = (path, error) => told.add(`${path}: ${(error as Error).message}`);
      await look(spool, onBroken);
      await take(spool, onBroken);
      const bytes = Buffer.byteLength(encodeSpoolLine(json(1)));
      const reason = `The file was removed by somebody, with up to ${bytes} bytes of rows that nobody has taken.`;
      expect([...told]).toEqual([`${segment()}: ${reason}`]);
      expect(spool.empty).toBe(true);
      await spool.close();
      rmSync(join(directory, 'slot-0'), { recursive: true });
    }
  });
});

test('what cannot be read counts for nothing, holds up no other, and is tried again when asked', async () => {
  const segment = join(directory, 'slot-0', '0000000001.ndjson');
  mkdirSync(segment, { recursive: true });
  const spool = await openSpool({ directory, maxBytes });
  const broken: string[] = [];
  const onBroken = (path: string): number => broken.push(path);
  await spool.append(json(2));
  expect((await take(spool, onBroken)).rows).toEqual([json(2)]);
  expect([spool.bytes, spool.empty]).toEqual([0, true]);
  await spool.append(json(3));
  expect((await take(spool)).rows).toEqual([json(3)]);
  await spool.append(json(4));
  expect(await rowsOf(spool, onBroken)).toEqual([json(4)]);
  rmdirSync(segment);
  writeFileSync(segment, encodeSpoolLine(json(1)));
  expect((await take(spool, onBroken, true)).rows).toEqual([json(1), json(4)]);
  expect(broken).toEqual([segment, segment]);
  expect(readdirSync(join(directory, 'slot-0'))).toEqual(['lock']);
  await spool.close();
});

test('rows whose file cannot be removed are handed out once', async () => {
  const spool = await openSpool({ directory, maxBytes });
  await spool.append(json(1));
  const { rm: remove } = await vi.importActual<typeof import('node:fs/promises')>('node:fs/promises');
  vi.mocked(rm).mockRejectedValueOnce(new Error('EROFS')).mockRejectedValueOnce(new Error('EROFS'));
  const broken: string[] = [];
  const onBroken = (path: string): number => broken.push(path);
  expect((await take(spool, onBroken)).rows).toEqual([json(1)]);
  expect(await rowsOf(spool, onBroken)).toEqual([]);
  expect((await take(spool, onBroken, true)).rows).toEqual([]);
  expect(broken).toHaveLength(2);
  vi.mocked(rm).mockImplementation(remove);
  expect((await take(spool, unbroken, true)).rows).toEqual([]);
  expect(readdirSync(join(directory, 'slot-0'))).toEqual(['lock']);
  await spool.close();
});

test('a folder that somebody removes takes no row into a file without a name, and is made again', async () => {
  const spool = await openSpool({ directory, maxBytes });
  await spool.append(json(1));
  rmSync(join(directory, 'slot-0'), { recursive: true });
  expect(await spool.append(json(2))).toBe(false);
  expect(spool.full).toBe(true);
  await spool.retry();
  expect(spool.full).toBe(false);
  expect(await spool.append(json(3))).toBe(true);
  expect((await take(spool, () => {})).rows).toEqual([json(3)]);
  const second = await openSpool({ directory, maxBytes });
  expect(readdirSync(directory)).toEqual(['slot-0', 'slot-1']);
  await Promise.all([spool.close(), second.close()]);
});

test('rows come out once, in order, and the space is free again', async () => {
  const spool = await openSpool({ directory, maxBytes });
  const rows = Array.from({ length: 1000 }, (_, index) => json(index));
  const kept = await Promise.all(rows.map((row) => spool.append(row)));
  expect(kept.every(Boolean)).toBe(true);
  expect(spool.bytes).toBeGreaterThan(0);
  expect((await take(spool)).rows).toEqual(rows);
  expect(spool.bytes).toBe(0);
  expect((await take(spool)).rows).toEqual([]);
  expect(readdirSync(join(directory, 'slot-0'))).toEqual(['lock']);
  await spool.close();
});

test('rows appended during a replay are kept for the next one', async () => {
  const spool = await openSpool({ directory, maxBytes });
  await spool.append(json(1));
  const seen: string[] = [];
  await spool.replay(
    async (batch) => {
      seen.push(...batch.rows);
      expect(await spool.append(json(2))).toBe(true);
    },
    unbroken,
    false,
  );
  expect(seen).toEqual([json(1)]);
  expect((await take(spool)).rows).toEqual([json(2)]);
  await spool.close();
});

test('a spool is empty when nothing lies in it and nothing is on its way there', async () => {
  const spool = await openSpool({ directory, maxBytes });
  expect(spool.empty).toBe(true);
  const appended = spool.append(json(1));
  expect([spool.bytes, spool.empty]).toEqual([0, false]);
  await appended;
  expect(spool.empty).toBe(false);
  await take(spool);
  expect(spool.empty).toBe(true);
  await spool.close();
});

/** Hands out until the batch with this row, which is refused. */
function until(text: string, rows: string[], spool: RowSpool): (batch: SpoolBatch) => Promise<void> {
  return async (batch) => {
    if (batch.rows.includes(text)) throw new Error('away');
    rows.push(...batch.rows);
    await spool.setAside(batch.bad);
  };
}

test('a replay that fails loses nothing and goes on with the batch that was not taken', async () => {
  const spool = await openSpool({ directory, maxBytes });
  const rows = Array.from({ length: 500 }, (_, index) => json(index));
  await Promise.all(rows.map((row) => spool.append(row)));
  const taken: string[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1)
    await expect(spool.replay(until(json(300), taken, spool), unbroken, false)).rejects.toThrow('away');
  expect(taken).toEqual(rows.slice(0, 200));
  expect(await rowsOf(spool, unbroken)).toEqual(rows.slice(200));
  expect((await take(spool)).rows).toEqual(rows.slice(200));
  await spool.close();
});

test('lines that are no rows are set aside once, however often the replay has to begin anew', async () => {
  const lines = Array.from({ length: 500 }, (_, index) => encodeSpoolLine(json(index)));
  const torn = ['torn in the first batch', 'torn in the second', 'torn in the third'];
  for (const [index, text] of torn.entries()) lines.splice(index * 200 + 50, 0, `${text}\n`);
  leaveSegment(lines.join(''));
  const aside = join(directory, 'slot-0', 'bad.ndjson');
  const progress = new ReplayProgress();
  const rows: string[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    for await (const spool of abandonedSpools({ directory, maxBytes }, unbroken, progress, new Disk())) {
      await expect(spool.replay(until(json(300), rows, spool), unbroken, false)).rejects.toThrow('away');
      await spool.close();
    }
    expect(readFileSync(aside, 'utf8')).toBe(`${torn[0]}\n`);
  }
  rows.push(...(await takeAbandoned(progress)).rows);
  expect(rows).toEqual(Array.from({ length: 500 }, (_, index) => json(index)));
  expect(readFileSync(aside, 'utf8')).toBe(torn.map((text) => `${text}\n`).join(''));
  // The next segment of this name and length has nothing to do with it.
  leaveSegment(lines.join(''));
  expect((await takeAbandoned(progress)).rows).toHaveLength(500);
});

test('a batch of which the disk set nothing aside, since it hung, is handed out again', async () => {
  leaveSegment(`torn\n${encodeSpoolLine(json(1))}`);
  const spool = await openSpool({ directory, maxBytes });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  onTestFinished(() => void vi.useRealTimers());
  const hanging = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  vi.mocked(appendFile).mockImplementationOnce(() => {
    asked.resolve();
    return hanging.promise;
  });
  const told: unknown[] = [];
  const replayed = take(spool, (_path, error) => told.push(error));
  await asked.promise;
  await vi.advanceTimersByTimeAsync(diskLimitMs + 1);
  await replayed;
  expect(told).toEqual([expect.any(DiskHangs)]);
  hanging.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(await take(spool)).toEqual({ rows: [json(1)], bad: 1 });
  expect(readFileSync(join(directory, 'slot-0', 'bad.ndjson'), 'utf8')).toBe('torn\n');
  await spool.close();
});

test('a spool torn at any byte gives back every whole row and sets the torn one aside', async () => {
  const rows = [json(1), json(2), json(3)];
  const bytes = Buffer.from(rows.map(encodeSpoolLine).join(''));
  const lineEnds = rows.map(
    (_, index) =>
      Buffer.from(
        rows
          .slice(0, index + 1)
          .map(encodeSpoolLine)
          .join(''),
      ).length,
  );
  for (let length = 0; length <= bytes.length; length += 1) {
    rmSync(join(directory, 'slot-0'), { recursive: true, force: true });
    leaveSegment(bytes.subarray(0, length));
    const spool = await openSpool({ directory, maxBytes });
    await spool.append(json(9));
    const result = await take(spool);
    // A line that lacks nothing but its end is whole.
    const whole = lineEnds.filter((end) => end - 1 <= length).length;
    const torn = length > 0 && !lineEnds.includes(length) && !lineEnds.includes(length + 1);
    expect(result).toEqual({ rows: [...rows.slice(0, whole), json(9)], bad: torn ? 1 : 0 });
    await spool.close();
    if (torn) {
      const aside = readFileSync(join(directory, 'slot-0', 'bad.ndjson'));
      expect(bytes.toString('latin1')).toContain(aside.subarray(0, -1).toString('latin1'));
    }
  }
});

test('garbage between rows, without end or of any bytes, costs no row', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), async (pieces) => {
      rmSync(join(directory, 'slot-0'), { recursive: true, force: true });
      const lines = pieces.map((piece, index) =>
        Buffer.concat([Buffer.from(piece), Buffer.from('\n'), Buffer.from(encodeSpoolLine(json(index)))]),
      );
      leaveSegment(Buffer.concat(lines));
      const spool = await openSpool({ directory, maxBytes });
      expect((await take(spool)).rows).toEqual(pieces.map((_, index) => json(index)));
      await spool.close();
    }),
    { numRuns: 50 },
  );
  rmSync(join(directory, 'slot-0'), { recursive: true, force: true });
  const endless = Buffer.alloc(3 * 1024 * 1024, 'x');
  leaveSegment(Buffer.concat([endless, Buffer.from(`\n${encodeSpoolLine(json(5))}`)]));
  const spool = await openSpool({ directory, maxBytes });
  expect((await take(spool)).rows).toEqual([json(5)]);
  await spool.close();
});

test('a line with any character changed is no row', () => {
  const line = encodeSpoolLine(json(3)).slice(0, -1);
  expect(decodeSpoolLine(line)).toBe(json(3));
  for (let index = 0; index < line.length; index += 1) {
    const changed = line.slice(0, index) + (line[index] === '0' ? '1' : '0') + line.slice(index + 1);
    expect(decodeSpoolLine(changed)).toBeNull();
  }
});

test('a spool is full before its limit, takes the rest of running requests, and never passes the limit', async () => {
  const spool = await openSpool({ directory, maxBytes: 8000 });
  let kept = 0;
  let keptWhileFull = 0;
  while (await spool.append(json(0))) {
    kept += 1;
    if (spool.full) keptWhileFull += 1;
  }
  expect(spool.bytes).toBeLessThanOrEqual(8000);
  expect(keptWhileFull).toBeGreaterThan(0);
  expect((await take(spool)).rows).toHaveLength(kept);
  expect(spool.full).toBe(false);
  expect(await spool.append(json(0))).toBe(true);
  await spool.close();
});

test('a disk that refuses shows as full and is used again once it recovers', async () => {
  const spool = await openSpool({ directory, maxBytes });
  const folder = join(directory, 'slot-0');
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  expect(await spool.append(json(1))).toBe(false);
  expect(spool.full).toBe(true);
  await spool.retry();
  expect(spool.full).toBe(true);
  rmSync(folder);
  await spool.retry();
  expect(spool.full).toBe(false);
  expect(await spool.append(json(2))).toBe(true);
  expect((await take(spool)).rows).toEqual([json(2)]);
  await spool.close();
});

test('each holder has a slot of its own, and one left behind is taken over once', async () => {
  const first = await openSpool({ directory, maxBytes });
  const second = await openSpool({ directory, maxBytes });
  await first.append(json(1));
  await second.append(json(2));
  expect(await takeAbandoned()).toEqual({ rows: [], broken: [] });
  await second.close();
  const [one, other] = await Promise.all([takeAbandoned(), takeAbandoned()]);
  expect([...one.rows, ...other.rows]).toEqual([json(2)]);
  await first.close();
});

test('the lock holds against other processes and falls with the one that is killed', async () => {
  const path = join(directory, 'lock');
  const child = fork(new URL('./lock-child.ts', import.meta.url), [path]);
  await once(child, 'message');
  expect(tryLock(path)).toBeNull();
  // Asking must not have broken the lock, as closing a file does with locks of POSIX.
  expect(tryLock(path)).toBeNull();
  child.kill('SIGKILL');
  await once(child, 'exit');
  const lock = tryLock(path);
  expect(lock).not.toBeNull();
  expect(tryLock(path)).toBeNull();
  lock?.release();
});
