import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ended } from '../stage/children.ts';
import { isStopped } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';

/** How long a part may take to come up; a busy machine with two cores needs about 15 s. */
const READY_MS = 120_000;
const POLL_MS = 200;
/** A part that ignores SIGTERM for this long is killed. */
const STOP_MS = 10_000;
/** Lines of a log that are worth showing. */
const LOG_TAIL = 5;

/** The long-running programs of a cluster, each with a log in `folder`, found through the paths of `env`. */
export class Parts {
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #running: { readonly name: string; readonly child: ChildProcess }[] = [];

  constructor(folder: string, env: NodeJS.ProcessEnv = process.env) {
    this.#folder = folder;
    this.#env = env;
  }

  /** Its failure is told by the wait that follows. */
  launch(name: string, program: string, args: readonly string[]): ChildProcess {
    const log = openSync(join(this.#folder, `${name}.log`), 'a');
    const child = spawn(program, args, { stdio: ['ignore', log, log], detached: true, env: this.#env });
    child.once('error', () => undefined);
    this.#running.push({ name, child });
    return child;
  }

  /** Resolves once `attempt()` ends with exit code 0. Throws StageError with the end of a log. */
  async waitFor(name: string, attempt: () => Promise<Ended>): Promise<void> {
    const end = Date.now() + READY_MS;
    while ((await attempt()).code !== 0) {
      const dead = this.#running.find(({ child }) => child.exitCode !== null || child.pid === undefined);
      if (isStopped()) throw new StageError('Stopped before the cluster was up.');
      if (dead !== undefined || Date.now() > end) throw this.#failure(dead?.name ?? name);
      await delay(POLL_MS);
    }
  }

  #failure(name: string): StageError {
    const lines = readFileSync(join(this.#folder, `${name}.log`), 'utf8')
      .trim()
      .split('\n');
    return new StageError(`${name} did not come up:\n${lines.slice(-LOG_TAIL).join('\n')}`);
  }

  /** Last started, first stopped, so that nobody complains about the API server's end. */
  async stop(): Promise<void> {
    for (const { child } of this.#running.toReversed()) await stopPart(child);
  }
}

async function stopPart(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'close');
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGTERM');
  await gone;
  clearTimeout(killer);
}
