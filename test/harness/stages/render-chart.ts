import { renderedFiles } from '../cluster/render.ts';
import { writeStale } from '../generated/made-files.ts';

/** `npm run render:chart`: writes the renderings that the tests compare with. With `--check` it tells which are old. */
await writeStale('render:chart', renderedFiles);
