import { copyAssets } from '../copy-assets.mjs';
import { run } from './children.mjs';
import { inProject, root } from './project.mjs';

/** Runs a tool that ships as a Node program in node_modules; its output is shown. Returns whether it succeeded. */
export async function runTool(node, entry, args) {
  const { code } = await run(node, [inProject('node_modules', entry), ...args], { cwd: root });
  return code === 0;
}

/** src → dist, incrementally: about 0.2 s when nothing changed. Returns whether it succeeded. */
export async function build(node) {
  const compiled = await runTool(node, 'typescript/bin/tsc', ['-p', 'tsconfig.build.json']);
  copyAssets();
  return compiled;
}
