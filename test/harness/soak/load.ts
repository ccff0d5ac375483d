import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { SoakOrder, SoakReport } from './load-child.ts';
import type { Ended } from './requests.ts';

export interface SoakLoad {
  /** Requests that have ended, as of the last pause; those that others sent meanwhile are added to them. */
  readonly ended: Ended[];
  /** Due, but not sent, since too many were open. */
  skipped(): number;
  goOn(): void;
  /** Resolves once nothing is open any more; the connections are closed too. */
  pause(): Promise<void>;
  stop(): void;
}

/** Mixed requests of these service keys at a steady rate, from a process of its own; it begins paused. */
export function startSoakLoad(url: string, keys: readonly string[], perSecond: number): SoakLoad {
  const child = fork(join(import.meta.dirname, 'load-child.ts'), { serialization: 'advanced' });
  const ended: Ended[] = [];
  let skipped = 0;
  let quiet: { resolve: () => void; reject: (error: Error) => void } | undefined;
  child.on('message', (report: SoakReport) => {
    if (report.kind === 'ended') ended.push(...report.ended);
    else {
      skipped = report.skipped;
      quiet?.resolve();
    }
  });
  child.on('exit', (code) => quiet?.reject(new Error(`the load ended by itself (${code})`)));
  const order = (what: SoakOrder) => child.send(what);
  let isStarted = false;
  return {
    ended,
    skipped: () => skipped,
    goOn: () => {
      order(isStarted ? { kind: 'go-on' } : { kind: 'start', url, keys, perSecond });
      isStarted = true;
    },
    pause: () =>
      new Promise((resolve, reject) => {
        quiet = { resolve, reject };
        order({ kind: 'pause' });
      }),
    stop: () => {
      child.disconnect();
    },
  };
}
