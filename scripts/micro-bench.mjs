import { readFileSync, writeFileSync } from 'node:fs';
import { measureParts } from './bench/micro.mjs';
import { withParts } from './bench/page.mjs';
import { partsTable } from './bench/tables.mjs';
import { inProject } from './lib/project.mjs';
import { makeRunFolder } from './lib/run-folder.mjs';
import { runStage } from './lib/stage.mjs';

/**
 * `npm run bench:micro`: what the parts of the hot path take (test/bench), against one JSON.parse. Prints a table and
 * writes it into docs/performance.md. Less than a minute.
 */
await runStage('scripts/micro-bench.mjs', async (node) => {
  const folder = makeRunFolder();
  try {
    const measurements = await measureParts(node, folder.path, { smoke: false });
    console.log(`\n${partsTable(measurements)}\n`);
    const file = inProject('docs', 'performance.md');
    const date = new Date().toISOString().slice(0, 10);
    writeFileSync(file, withParts(readFileSync(file, 'utf8'), measurements, date));
    return { passed: measurements.length, failed: 0, skipped: 0 };
  } finally {
    await folder.remove();
  }
});
