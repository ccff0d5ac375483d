import { join } from 'node:path';
import { chartFolder } from '../../chart/chart-files.ts';
import { earlierRevision, extractRevision } from '../../harness/stage/earlier-revision.ts';

/** The chart that somebody may have installed before this one; null in a checkout without history. */
export function earlierChart(): { readonly path: string; readonly revision: string } | null {
  const revision = earlierRevision(chartFolder);
  if (revision === null) return null;
  return { path: join(extractRevision(revision, [chartFolder]), chartFolder), revision };
}
