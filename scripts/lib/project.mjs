import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout, as an absolute path. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The oldest Node that runs the dependencies; `engines` in package.json says the same. */
export const minimumNode = [22, 19];

/** Fetched through npm when the installed Node is too old. */
export const fetchedNode = '24.21.0';

/** A path inside the checkout. */
export function inProject(...parts) {
  return join(root, ...parts);
}

/** What the launchers remember; lost with node_modules, and cheap to find again. */
export function inCache(...parts) {
  return inProject('node_modules', '.cache', 'model-gateway', ...parts);
}

/** An error whose message is the one line that the user sees. */
export class LaunchError extends Error {}

/** Where the system says no to whoever runs this: the checkout is another user's, or mounted to be read. */
const mayNotWrite = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC']);

/** The one line of it that the user sees; null for what nobody expected, which is told whole. */
export function toldOf(error) {
  if (error instanceof LaunchError) return error.message;
  return mayNotWrite.has(error?.code) ? `${root} cannot be written to: ${error.message}` : null;
}
