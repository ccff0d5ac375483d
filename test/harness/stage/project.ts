import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The checkout, as an absolute path. */
export const root = resolve(import.meta.dirname, '..', '..', '..');

/** A path inside the checkout. */
export function inProject(...parts: string[]): string {
  return join(root, ...parts);
}

/** A path below what is kept between runs: unpacked and built programs. */
export function inCache(...parts: string[]): string {
  return join(homedir(), '.cache', 'model-gateway', ...parts);
}

/** What is missing or wrong on this machine, in one line for the user. */
export class StageError extends Error {
  override readonly name = 'StageError';
}
