import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** For `npm run bench:micro`: apart from `npm test`, since times are only worth something on a quiet machine. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    benchmark: { include: ['test/bench/*.bench.ts'] },
    // One file at a time: what runs beside another is measured too.
    fileParallelism: false,
    testTimeout: 60_000,
    reporters: [['default', { summary: false }]],
  },
});
