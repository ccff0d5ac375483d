import { handleStopSignals, isStopped, run } from './lib/children.mjs';
import { ensureInstalled } from './lib/install.mjs';
import { findNode } from './lib/node-binary.mjs';
import { inProject, LaunchError } from './lib/project.mjs';

/** `npm run release -- --dry-run`: scripts/release/main.ts, with all packages installed and a Node that reads it. */
try {
  handleStopSignals();
  await ensureInstalled('all');
  const node = await findNode();
  const args = [inProject('scripts', 'release', 'main.ts'), ...process.argv.slice(2)];
  const { code } = isStopped() ? { code: 1 } : await run(node, args);
  process.exitCode = code ?? 1;
} catch (error) {
  if (!(error instanceof LaunchError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
