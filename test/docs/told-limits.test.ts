/** Limits that texts for operators tell are those of the code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clientStallMs } from '../../src/chat/exchange-limits.ts';
import { answerStallMs } from '../../src/http/answers/stalled-readers.ts';
import { bodiesHeapShare, smallBodyBytes } from '../../src/http/body/body-budget.ts';

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');

const small = `${smallBodyBytes / 1024} KiB`;
const sixteenths = { 3: 'three' }[bodiesHeapShare * 16];

test.each([
  ['src/environment.ts', `other routes take ${small}`],
  ['src/environment.ts', `Bodies over ${small} share ${sixteenths} sixteenths of the heap`],
  [
    'src/telemetry/families/counted-families.ts',
    `took nothing of a whole answer for ${answerStallMs / 1000} s`,
  ],
  ['src/telemetry/families/counted-families.ts', `An open stream has ${clientStallMs / 1000} s`],
])('%s tells of %s', (path, text) => {
  expect(read(path)).toContain(text);
});
