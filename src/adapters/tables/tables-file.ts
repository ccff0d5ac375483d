import type { FSWatcher, Stats } from 'node:fs';
import { closeSync, constants, fstatSync, openSync, readSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ReadTables, TablesListeners, TablesSource } from './last-good-tables.ts';
import {
  LastGoodTables,
  maxTablesBytes,
  readTables,
  TablesError,
  unreadableTables,
} from './last-good-tables.ts';

/** A swap of a mounted volume is several events within a few milliseconds. */
const debounceMs = 50;
/** The safety net where no event comes: network file systems, exhausted inotify limits, replaced directories. */
const pollMs = 2000;

/**
 * Reads and checks the tables of a file. Never throws. Synchronous on purpose: the file is small and local,
 * and a reload then is one step that no request can come between.
 */
export function readTablesFile(path: string): ReadTables {
  let descriptor: number;
  try {
    // A pipe in its place would hold up everything until somebody writes to it.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `cannot open ${path} (${code})`;
    return { ok: false, fault: { kind: 'unreadable', message, isMissing: code === 'ENOENT' } };
  }
  try {
    if (!fstatSync(descriptor).isFile()) return unreadableTables(`${path} is not a regular file`);
    // One byte of room beyond the cap tells a document of exactly that size from a longer one.
    const buffer = Buffer.allocUnsafe(maxTablesBytes + 1);
    let length = 0;
    for (let got = -1; got !== 0 && length < buffer.length; length += got) {
      got = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    return readTables(buffer.toString('utf8', 0, length));
  } catch (error) {
    return unreadableTables(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  } finally {
    closeSync(descriptor);
  }
}

async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch {
    return null;
  }
}

/** What tells two states of the file apart without reading it. Null: it is not there. */
async function signature(path: string): Promise<string | null> {
  const stats = await statOrNull(path);
  return stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

async function directoryIdentity(path: string): Promise<string | null> {
  const stats = await statOrNull(path);
  return stats && `${stats.dev}:${stats.ino}`;
}

export interface TablesFileOptions extends TablesListeners {
  /** Wall clock, for `loadedAtMs`. */
  readonly wallMs?: () => number;
}

/**
 * Loads the tables of a file and follows it. Its directory is watched, since a mounted ConfigMap changes by
 * the swap of a symlink beside the file, which ends a watch on the file itself. A bad, deleted or unreadable
 * document leaves the last good one in use. Rejects with TablesError when the first load fails.
 */
export async function watchTablesFile(path: string, options: TablesFileOptions = {}): Promise<TablesSource> {
  // Taken before the read: a change between the two is then seen as one.
  const seen = await signature(path);
  const first = readTablesFile(path);
  if (!first.ok) throw new TablesError(`${path}: ${first.fault.message}`);
  const tables = new LastGoodTables(first, options, options.wallMs ?? Date.now);
  const offer = (): boolean => {
    const read = readTablesFile(path);
    tables.offer(read);
    return read.ok || read.fault.kind === 'invalid' || read.fault.isMissing === true;
  };
  const follower = new FileFollower(path, seen, offer, (cause) => options.onBug?.(cause));
  await follower.start();
  return {
    current: () => tables.current(),
    status: () => tables.status(),
    close: () => follower.close(),
  };
}

/**
 * Calls `onChange` after the file at a path became another, however that came about. False: it could not be
 * read for now (no descriptor is left, the volume does not answer), and is offered again at the next look.
 */
class FileFollower {
  readonly #path: string;
  readonly #onChange: () => boolean;
  readonly #onBug: (cause: unknown) => void;
  #watcher: FSWatcher | null = null;
  #watched: string | null = null;
  #seen: string | null;
  #debounce: NodeJS.Timeout | null = null;
  #poll: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(path: string, seen: string | null, onChange: () => boolean, onBug: (cause: unknown) => void) {
    this.#path = path;
    this.#seen = seen;
    this.#onChange = onChange;
    this.#onBug = onBug;
  }

  async start(): Promise<void> {
    await this.#look();
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    if (this.#debounce !== null) clearTimeout(this.#debounce);
    if (this.#poll !== null) clearTimeout(this.#poll);
  }

  /** Watches the directory that is now at the path; it may have been replaced since the last time. */
  async #watchDirectory(): Promise<void> {
    const directory = dirname(this.#path);
    const identity = await directoryIdentity(directory);
    if (this.#closed || (identity === this.#watched && this.#watcher !== null)) return;
    this.#watcher?.close();
    this.#watcher = null;
    this.#watched = identity;
    if (identity === null) return;
    try {
      this.#watcher = watch(directory, { persistent: false }, () => this.#soon());
      this.#watcher.on('error', () => this.#dropWatcher());
    } catch {
      // No inotify watch to be had: the poll goes on alone.
      this.#dropWatcher();
    }
  }

  #dropWatcher(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  #soon(): void {
    if (this.#closed || this.#debounce !== null) return;
    this.#debounce = setTimeout(() => {
      this.#debounce = null;
      void this.#look();
    }, debounceMs);
  }

  /** Never rejects: the next look comes with the poll. */
  async #look(): Promise<void> {
    try {
      await this.#watchDirectory();
      await this.#check();
    } catch (cause) {
      this.#onBug(cause);
    }
  }

  async #check(): Promise<void> {
    const now = await signature(this.#path);
    if (this.#closed) return;
    if (this.#poll !== null) clearTimeout(this.#poll);
    this.#poll = setTimeout(() => {
      void this.#look();
    }, pollMs);
    this.#poll.unref();
    if (now !== this.#seen && this.#onChange()) this.#seen = now;
  }
}
