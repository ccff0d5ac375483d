import { readFileSync, writeFileSync } from 'node:fs';
import { measureParts } from '../bench/micro.ts';
import { withParts } from '../bench/page.ts';
import { partsTable } from '../bench/tables.ts';
import { inProject } from '../stage/project.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';

/**
 * `npm run bench:micro`: what the parts of the hot path take (test/bench), against one JSON.parse. Prints a table and
 * writes it into docs/performance.md. Less than a minute.
 */
await runStage(() =>
  withRunFolder(async (folder) => {
    const measurements = await measureParts(folder, { smoke: false });
    console.log(`\n${partsTable(measurements)}\n`);
    const file = inProject('docs', 'performance.md');
    const date = new Date().toISOString().slice(0, 10);
    writeFileSync(file, withParts(readFileSync(file, 'utf8'), measurements, date));
    return { passed: measurements.length, failed: 0, skipped: 0 };
  }),
);
