/** Shows a figure among the results of a run. */
export function tellMeasured(text: string): void {
  process.stdout.write(`measured: ${text}\n`);
}
