import { readFileSync } from 'node:fs';
import { parse as parseYaml } from 'yaml';
import type { MountedKeys } from '../../core/account/mounted-keys.ts';
import { readMountedKeys } from '../../core/account/mounted-keys.ts';

/** Keys of a mounted Secret, YAML or JSON. */
export function readMountedKeysFile(path: string): MountedKeys {
  let document: unknown;
  try {
    document = parseYaml(readFileSync(path, 'utf8'));
  } catch {
    // Nothing of the file's content may reach a log: it holds keys.
    return { ok: false, message: `${path} cannot be read, or is not YAML or JSON.` };
  }
  return readMountedKeys(document);
}
