import { expect, test } from 'vitest';
// @ts-expect-error: what runs before anything is installed has no types
import { LaunchError, root, toldOf } from '../../scripts/lib/project.mjs';

const errno = (code: string) => Object.assign(new Error(`${code}: no, mkdir '.start'`), { code });

test.each<[what: string, error: Error, line: string | null]>([
  ['what the launchers say themselves', new LaunchError('Install Node 24.'), 'Install Node 24.'],
  ...['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].map((code): [string, Error, string] => [
    code,
    errno(code),
    `${root} cannot be written to: ${code}: no, mkdir '.start'`,
  ]),
  ['a bug, which is told whole', new TypeError('x is not a function'), null],
])('of %s the user sees one line', (_what, error, line) => {
  expect(toldOf(error)).toBe(line);
});
