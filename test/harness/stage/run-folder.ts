import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isStopped } from './children.ts';

/** Where servers write their process id. */
const pidFiles = ['postmaster.pid', 'redis.pid', 'prometheus.pid', 'gateway.pid', 'registry.pid'];

/** What a killed worker started may still write for a moment. */
const LAST_WORDS_MS = 1_500;

export interface RunFolder {
  readonly path: string;
  /** Ends the servers that a killed test worker left in it, then deletes it. */
  remove(): Promise<void>;
}

/** A temporary folder that becomes TMPDIR of everything started from now on. */
export function makeRunFolder(): RunFolder {
  const path = mkdtempSync(join(tmpdir(), 'model-gateway-run-'));
  chmodSync(path, 0o711); // the user that Postgres runs as must pass through
  process.env['TMPDIR'] = path;
  return {
    path,
    async remove() {
      sweep(path);
      if (!isStopped()) return;
      await delay(LAST_WORDS_MS);
      sweep(path);
    },
  };
}

function sweep(path: string): void {
  if (!existsSync(path)) return;
  for (const file of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
    if (pidFiles.includes(basename(file))) killOwner(join(path, file));
  }
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

function killOwner(pidFile: string): void {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
    if (pid > 1) process.kill(pid, 'SIGKILL');
  } catch {
    // it ended by itself
  }
}
