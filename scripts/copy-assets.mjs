import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** Copies what the compiler does not: every src/**\/*.sql to the same place below dist; drops those that are gone. */
export function copyAssets() {
  const wanted = listSql(join(root, 'src'));
  for (const path of wanted) {
    mkdirSync(dirname(join(root, 'dist', path)), { recursive: true });
    copyFileSync(join(root, 'src', path), join(root, 'dist', path));
  }
  for (const path of listSql(join(root, 'dist')))
    if (!wanted.includes(path)) rmSync(join(root, 'dist', path));
}

/** Paths relative to the folder. */
function listSql(folder) {
  return readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('.sql'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) copyAssets();
