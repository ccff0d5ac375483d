import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import type { WitnessQuestion, WitnessReport } from '../witness.ts';

/** A loop held for longer than this has failed anyway. */
const answerLimitMs = 30_000;

export interface Witness {
  /** What the gateway's process says of itself; `collect` collects its garbage first. Rejects when it says nothing. */
  ask(collect?: boolean): Promise<WitnessReport>;
  /** The most memory the process has had since the last call; Linux only, 0 elsewhere. */
  peakBytes(): number;
  /** How long the process was ready to run and did not: other work of the machine. Linux only, 0 elsewhere. */
  waitedMs(): number;
}

export function witnessOf(gateway: ChildProcess): Witness {
  const waiting = new Map<number, (report: WitnessReport) => void>();
  let last = 0;
  gateway.on('message', (message) => {
    const report = message as WitnessReport;
    waiting.get(report.id)?.(report);
    waiting.delete(report.id);
  });
  return {
    ask: (collect = false) =>
      new Promise((resolve, reject) => {
        last += 1;
        const question: WitnessQuestion = { id: last, collect };
        const timer = setTimeout(() => reject(new Error('the gateway said nothing for 30 s')), answerLimitMs);
        waiting.set(question.id, (report) => {
          clearTimeout(timer);
          resolve(report);
        });
        gateway.send(question, (error) => {
          if (error !== null) reject(new Error('the gateway is gone'));
        });
      }),
    peakBytes: () => readPeak(gateway.pid ?? 0),
    waitedMs: () => readWaited(gateway.pid ?? 0),
  };
}

function readPeak(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    // 5: the peak starts anew (proc(5), clear_refs).
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Of the main thread (Documentation/scheduler/sched-stats.rst: time on cpu, time waiting to run, both in ns). */
function readWaited(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waitedNs) / 1e6;
  } catch {
    return 0;
  }
}
