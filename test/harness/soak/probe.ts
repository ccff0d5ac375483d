import { appendFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Loaded into the gateway before it starts (`--import`): on SIGUSR2 it collects garbage and appends one line with its
 * memory to the file that GW_SOAK_PROBE_FILE names. Nothing else about the process is changed.
 */
setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');
const file = process.env['GW_SOAK_PROBE_FILE'] ?? '';

process.on('SIGUSR2', () => {
  // Twice: what the first one finalises, the second one frees.
  collectGarbage();
  setImmediate(() => {
    collectGarbage();
    const handles = process.getActiveResourcesInfo().length;
    appendFileSync(file, `${JSON.stringify({ ...process.memoryUsage(), handles })}\n`);
  });
});
