import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** How often a long installation says that it is still alive. */
const PROGRESS_MS = 3_000;

/** Says every few seconds how much is in a folder by now; `end` stops that, and returns what it would say. */
export function watchFolder(what, folder) {
  const begin = Date.now();
  const said = () => `${megabytesBelow(folder)} MB in ${Math.round((Date.now() - begin) / 1000)} s`;
  const ticker = setInterval(() => console.log(`... ${what}: ${said()}`), PROGRESS_MS);
  return {
    end() {
      clearInterval(ticker);
      return said();
    },
  };
}

/** While npm works files come and go: then it is the last sum that could be made. */
function megabytesBelow(folder) {
  let bytes = 0;
  const add = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) add(inside);
      else bytes += lstatSync(inside, { throwIfNoEntry: false })?.size ?? 0;
    }
  };
  try {
    add(folder);
  } catch {
    // Counted as far as it went.
  }
  return Math.round(bytes / 1e6);
}
