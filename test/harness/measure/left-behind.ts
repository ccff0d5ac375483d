import { readdirSync, readFileSync } from 'node:fs';

/** What a process has open or under way: sockets, servers, timers and processes, one entry for each. */

/** Of this process, what keeps it alive; and on Linux its processes, also those that do not. */
export function underWay(): string[] {
  return [...process.getActiveResourcesInfo(), ...ownProcesses()];
}

/** What is there now and was not before: of three timers two, where there was one. */
export function leftBehind(before: readonly string[], now: readonly string[]): string[] {
  const known = [...before];
  return now.filter((one) => {
    const at = known.indexOf(one);
    if (at >= 0) known.splice(at, 1);
    return at < 0;
  });
}

function ownProcesses(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/task')
    .flatMap((thread) => read(`/proc/self/task/${thread}/children`).trim().split(' '))
    .map((pid) => (pid === '' ? '' : read(`/proc/${pid}/cmdline`).split('\0').join(' ').trim()))
    .filter((command) => command !== '')
    .map((command) => `process: ${command}`);
}

/** Empty where it ended meanwhile; so is the command of a process that has ended and was not asked for its exit code. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
