import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { sourcesDigest } from '../../test/harness/cluster/render.ts';
import { generatedFiles } from '../../test/harness/generated/generated-files.ts';
import { staleFiles } from '../../test/harness/generated/made-files.ts';
import { inProject, root } from '../../test/harness/stage/project.ts';
import { packageVersion } from '../../test/harness/stage/version.ts';

/** What a release is made of and judged by. */
export interface ReleaseFacts {
  readonly version: string;
  /** The commit. */
  readonly revision: string;
  /** When it was made, in seconds since 1970: the age of every file of the release. */
  readonly committedAt: number;
  /** What `git status` says of the tree; nothing where it is clean. */
  readonly uncommitted: readonly string[];
  /** Commits by the tags that lead to them. */
  readonly tags: Readonly<Record<string, string>>;
  /** The tag that started the workflow; null where none did. */
  readonly startedBy: string | null;
  /** Host and folder of the registry to publish to; null where none is named. */
  readonly registry: string | null;
  readonly changelog: string;
  /** Committed files that do not hold what follows from others. */
  readonly stale: readonly string[];
}

/** The tag of a version. */
export const tagOf = (version: string): string => `v${version}`;

/** Throws where this is no Git checkout. */
export function readFacts(): ReleaseFacts {
  const rendered = 'test/chart/rendered/sources.sha256';
  const isRendered = readText(rendered).trim() === sourcesDigest();
  return {
    version: packageVersion,
    revision: git('rev-parse', 'HEAD'),
    committedAt: Number(git('log', '-1', '--format=%ct')),
    uncommitted: lines(git('status', '--porcelain')),
    tags: Object.fromEntries(
      lines(
        git(
          'tag',
          '--list',
          '--format=%(refname:short) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)',
        ),
      ).map((line) => line.split(' ') as [string, string]),
    ),
    registry: process.env['GW_RELEASE_REGISTRY'] || null,
    startedBy: /^refs\/tags\/(.+)$/.exec(process.env['GITHUB_REF'] ?? '')?.[1] ?? null,
    changelog: readText('CHANGELOG.md'),
    stale: [...staleFiles(generatedFiles()).map(({ path }) => path), ...(isRendered ? [] : [rendered])],
  };
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trimEnd();
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
const readText = (path: string): string => readFileSync(inProject(path), 'utf8');
