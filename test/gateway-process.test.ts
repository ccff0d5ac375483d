import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import * as engineFlags from '../src/engine-flags.ts';

const run = promisify(execFile);
const fileOf = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** Run in a process of its own: flags of V8 cannot be taken back. */
const watched = `
  import { syncBuiltinESMExports } from 'node:module';
  import v8 from 'node:v8';
  const set = new Set();
  v8.setFlagsFromString = (flag) => set.add(flag);
  syncBuiltinESMExports();
  const engineFlags = await import(${fileOf('../src/engine-flags.ts')});
  const { prepareGateway } = await import(${fileOf('../src/gateway-process.ts')});
  await prepareGateway({ tracing: { enabled: false, auto: false } });
  const left = [];
  for (const [name, ask] of Object.entries(engineFlags)) {
    const before = new Set(set);
    set.clear();
    ask();
    if (set.size === 0 || [...set].some((flag) => !before.has(flag))) left.push(name);
    for (const flag of before) set.add(flag);
  }
  console.log(JSON.stringify(left));
  process.exit();
`;

test('a process that becomes a gateway asks V8 for all that engine-flags.ts knows', async () => {
  expect(Object.keys(engineFlags).length).toBeGreaterThan(3);
  const asked = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', watched];
  const { stdout } = await run(process.execPath, asked);
  expect(JSON.parse(stdout)).toEqual([]);
});
