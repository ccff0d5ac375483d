/** Milliseconds of this process' CPU that `run` takes: unlike the clock's they stay the same on a busy machine. */
export function cpuMsOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
