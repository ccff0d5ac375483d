import { runTool } from './build.ts';
import { inProject, StageError } from './project.ts';

/**
 * Compiles what runs in processes whose memory or CPU is measured, into dist/measured. If Node stripped types there, its
 * compiler would stay in their memory: 18 MiB, of which 4 MiB are heap, and change their garbage collection. Throws
 * StageError.
 */
export async function buildMeasured(): Promise<void> {
  const isBuilt = await runTool('typescript/bin/tsc', ['-p', 'test/harness/tsconfig.measured.json']);
  if (!isBuilt) throw new StageError('What runs inside measured processes could not be compiled.');
}

/** The compiled form of test/harness/ROOM/NAME.ts. */
export function measuredFile(room: 'bench' | 'soak', name: string): string {
  return inProject('dist', 'measured', room, `${name}.js`);
}
