import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { earlierRevision, extractRevision } from '../../harness/stage/earlier-revision.ts';
import { inProject } from '../../harness/stage/project.ts';

const sources = ['src', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Builds what somebody may run before this build, with the packages of this one; null in a checkout without history. */
export function earlierBuild(): { readonly main: string; readonly revision: string } | null {
  const revision = earlierRevision('src');
  if (revision === null) return null;
  const folder = extractRevision(revision, sources);
  symlinkSync(inProject('node_modules'), join(folder, 'node_modules'));
  const compiler = inProject('node_modules', 'typescript', 'bin', 'tsc');
  for (const args of [[compiler, '-p', 'tsconfig.build.json'], ['scripts/copy-assets.mjs']])
    execFileSync(process.execPath, args, { cwd: folder, stdio: 'inherit' });
  return { main: join(folder, 'dist', 'main.js'), revision };
}
