import { generatedFiles } from '../cluster/generated-files.ts';
import { writeStale } from '../cluster/made-files.ts';

/**
 * `npm run generate:chart`: what in the chart and in k8s/ follows from other files. With `--check` nothing is written
 * and the exit code is 1 when a file is not what would be written.
 */
await writeStale('generate:chart', generatedFiles);
