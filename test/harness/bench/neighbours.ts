import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** How long we look at what else runs. */
const LOOK_MS = 1_000;
const IDLE_CORES = 0.2;
const QUIET_HOST = 0.02;

/** Who had a part of this machine while something was measured on it. */
export interface Neighbours {
  /** In use by other programs just before or just afterwards. */
  readonly cores: number;
  /** Meanwhile: of the time that a program was to run, the part in which the host ran other machines. 0 to 1. */
  readonly stolen: number;
}

/** Looks before and after `work`. Linux only. */
export async function amongNeighbours<T>(work: () => Promise<T>): Promise<[T, Neighbours]> {
  const coresBefore = await busyCores();
  const before = machineTicks();
  const result = await work();
  const after = machineTicks();
  const stolen = (after.stolen - before.stolen) / (after.wanted - before.wanted);
  return [result, { cores: Math.max(coresBefore, await busyCores()), stolen }];
}

/** A sentence for the reader of the figures. */
export function tellNeighbours({ cores, stolen }: Neighbours): string {
  const told = [
    ...(cores < IDLE_CORES
      ? []
      : [`other programs used up to ${cores.toFixed(1)} cores just before or afterwards`]),
    ...(stolen < QUIET_HOST
      ? []
      : [`the host gave ${(100 * stolen).toFixed(0)} % of its time to other machines`]),
  ];
  return told.length === 0
    ? 'The machine was idle before and afterwards, and its host left it its cores.'
    : `The machine was not alone: ${told.join(', and ')}.`;
}

/** Of all cores since boot: the first line of /proc/stat, as proc_stat(5) has it. */
function machineTicks(): { readonly wanted: number; readonly stolen: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return { wanted: user + nice + system + irq + softirq + stolen, stolen };
}

/** How many cores are in use while we do nothing. */
async function busyCores(): Promise<number> {
  const busy = () =>
    cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const before = busy();
  await delay(LOOK_MS);
  return (busy() - before) / LOOK_MS;
}
