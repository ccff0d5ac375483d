import { readFileSync } from 'node:fs';

/** The version of package.json, a folder above both src and dist. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return String((JSON.parse(text) as { version?: string }).version);
}
