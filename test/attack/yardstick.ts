/**
 * Loaded into a gateway that nobody attacks (`node --import`): the same small work again and again. What it takes of
 * CPU time tells how slow the machine is at the moment, whatever else it does. Asked over IPC.
 */
export interface YardstickReport {
  readonly id: number;
  /** CPU time from one round of the work to the next, the median since the last report; null without any. */
  readonly workCpuMs: number | null;
}

const everyMs = 50;
/** Some three milliseconds: what the process does besides is little beside it. */
const parsings = 8;
/** As the gateway's own work is: parsing, and memory for what was parsed. */
const text = JSON.stringify(
  Array.from({ length: 800 }, (_, index) => ({ index, role: 'user', content: `word ${index} `.repeat(8) })),
);
let took: number[] = [];
let lastMs: number | null = null;

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
};

/** From start to start: the kernel keeps the sum exact where a process has slept, and not within its run. */
function measure(): void {
  const nowMs = cpuMs();
  if (lastMs !== null) took.push(nowMs - lastMs);
  lastMs = nowMs;
  for (let time = 0; time < parsings; time += 1) JSON.parse(text);
}

process.on('message', (question) => {
  const { id } = question as { readonly id: number };
  const sorted = took.sort((a, b) => a - b);
  const report: YardstickReport = { id, workCpuMs: sorted[Math.floor(sorted.length / 2)] ?? null };
  took = [];
  process.send?.(report);
});
process.channel?.unref();
setInterval(measure, everyMs).unref();
