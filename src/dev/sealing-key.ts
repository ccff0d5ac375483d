import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SealingKey } from '../core/secret/sealing-key.ts';
import { StartError } from './start-error.ts';

/** The embedded default's own sealing key: made once, mode 0600. Production never generates one. */
export function keepSealingKey(dataDirectory: string): SealingKey {
  const path = join(dataDirectory, 'sealing.key');
  try {
    writeFileSync(path, randomBytes(32).toString('base64'), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const key = Buffer.from(readFileSync(path, 'utf8'), 'base64');
  if (key.length !== 32)
    throw new StartError(`${path} is not a sealing key: restore it, or remove ${dataDirectory}.`);
  return { id: 'dev', key };
}
