import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './project.ts';

/** What somebody may run when this commit reaches them. */

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** What is tagged at this very commit is no earlier one. */
function lastRelease(): string | undefined {
  const here = git('tag', '--points-at', 'HEAD').split('\n');
  const releases = git('tag', '--list', 'v*', '--merged', 'HEAD', '--sort=-version:refname').split('\n');
  return releases.find((tag) => tag !== '' && !here.includes(tag));
}

/**
 * The last release, or without one the commit in which `path` was another one before. Null where Git does not know it,
 * as in a checkout without history.
 */
export function earlierRevision(path: string): string | null {
  try {
    const [, before] = git('log', '-2', '--format=%H', '--', path).split('\n');
    return lastRelease() ?? before ?? null;
  } catch {
    return null;
  }
}

/** Puts files of that revision into a folder of their own. */
export function extractRevision(revision: string, paths: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'earlier-'));
  const archive = execFileSync('git', ['archive', revision, ...paths], { cwd: root, maxBuffer: 2 ** 28 });
  execFileSync('tar', ['--extract', '--directory', folder], { input: archive });
  return folder;
}
