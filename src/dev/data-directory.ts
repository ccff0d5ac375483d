import { accessSync, constants, mkdirSync } from 'node:fs';
import { StartError } from './start-error.ts';

/** Makes the folder when it is missing. Throws StartError when we cannot read, write and enter it. */
export function makeUsableDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(
      `The data directory ${directory} cannot be used (${code}): repair it, or set GW_DATA_DIR to another one.`,
    );
  }
}
