import { describe, expect, test } from 'vitest';
import { errorTypes } from '../../../src/core/errors.ts';
import { errorText, errorTypeIn } from '../../../src/core/log/error-text.ts';
import { cutCauses } from '../../../src/core/settled-request.ts';

const messages = [
  '',
  'The stream broke.',
  'openai: 500: no: way',
  'x'.repeat(600),
  'a\u0000b',
  'sk-abcdefghij',
];

describe.each(errorTypes)('%s', (type) => {
  test.each(messages)('is read again from what was written of %j', (message) => {
    const error = { type, message };
    expect(errorTypeIn(errorText({ status: 'error', error }))).toBe(type);
    for (const cut of cutCauses)
      expect(errorTypeIn(errorText({ status: 'incomplete', cut, error }))).toBe(type);
  });
});

test.each([
  [errorText({ status: 'success' }), null],
  [errorText({ status: 'client_closed' }), 'client_closed'],
  ['api_error: Something went wrong.', 'api_error'],
  ['of another release', 'of another release'],
  ['', ''],
])('%j names %j', (text, type) => {
  expect(errorTypeIn(text)).toBe(type);
});
