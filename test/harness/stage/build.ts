import { run } from './children.ts';
import { inProject, root, StageError } from './project.ts';

/** Runs a tool that ships as a Node program in node_modules; its output is shown. Returns whether it succeeded. */
export async function runTool(entry: string, args: readonly string[] = []): Promise<boolean> {
  const { code } = await run(process.execPath, [inProject('node_modules', entry), ...args], { cwd: root });
  return code === 0;
}

/** src → dist, incrementally: about 0.2 s when nothing changed. Returns whether it succeeded. */
export async function build(): Promise<boolean> {
  const compiled = await runTool('typescript/bin/tsc', ['-p', 'tsconfig.build.json']);
  const { code } = await run(process.execPath, [inProject('scripts', 'copy-assets.mjs')], { cwd: root });
  return compiled && code === 0;
}

/** What a stage needs before its tests. Throws StageError. */
export async function mustBuild(): Promise<void> {
  if (!(await build())) throw new StageError('The build failed; the compiler says why above.');
}
