import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allErrorCodes, errorCodes } from '../../src/core/error-codes.ts';
import { errorTypes } from '../../src/core/errors.ts';

const source = join(import.meta.dirname, '../../src');
const texts = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('error-codes.ts'))
  .map((path) => readFileSync(join(source, path), 'utf8'))
  .join('\n');

test('every type of error has its codes, and no code belongs to two', () => {
  expect(Object.keys(errorCodes).sort()).toEqual([...errorTypes].sort());
  expect(allErrorCodes).toEqual([...new Set(allErrorCodes)]);
});

test.each(allErrorCodes)('%s is sent by somebody', (code) => {
  // The one pair that is put together from what is wrong with an address.
  const text = code.startsWith('address_') ? 'code: `address_' : `'${code}'`;
  expect(texts.includes(text), `${code} in src/`).toBe(true);
});
