import { readFileSync, writeFileSync } from 'node:fs';
import { run } from './lib/children.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError, root } from './lib/project.mjs';

/**
 * `npm run generate:chart`: what in the chart and in k8s/ follows from other files. With `--check` nothing is written
 * and the exit code is 1 when a file is not what would be written.
 */
async function main() {
  const node = await findNode();
  if (node !== process.execPath) {
    const args = [inProject('scripts', 'generate-chart.mjs'), ...process.argv.slice(2)];
    return (await run(node, args, { cwd: root })).code ?? 1;
  }
  const { generatedFiles } = await import('./cluster/generated-files.mjs');
  const stale = (await generatedFiles()).filter(({ path, text }) => read(path) !== text);
  if (process.argv.includes('--check')) {
    for (const { path } of stale) console.error(`${path} is out of date: npm run generate:chart`);
    return stale.length === 0 ? 0 : 1;
  }
  for (const { path, text } of stale) {
    writeFileSync(inProject(path), text);
    console.log(`wrote ${path}`);
  }
  return 0;
}

function read(path) {
  try {
    return readFileSync(inProject(path), 'utf8');
  } catch {
    return null;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof LaunchError ? error.message : error);
  process.exitCode = 1;
}
