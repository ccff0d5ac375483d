import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import * as engineFlags from '../src/engine-flags.ts';

const run = promisify(execFile);
const module = new URL('../src/engine-flags.ts', import.meta.url).href;

test.each(Object.keys(engineFlags))('this Node knows what %s asks of V8', async (name) => {
  // A flag that V8 does not know changes nothing, and is told on standard error only.
  const { stderr } = await run(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '--eval',
    `import { ${name} } from '${module}'; ${name}();`,
  ]);
  expect(stderr).toBe('');
});
