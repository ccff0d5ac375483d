import { generatedFiles } from '../generated/generated-files.ts';
import { writeStale } from '../generated/made-files.ts';

/**
 * `npm run generate`: what in the chart, in k8s/ and in the documents follows from other files. With `--check` nothing is written
 * and the exit code is 1 when a file is not what would be written.
 */
await writeStale('generate', generatedFiles);
