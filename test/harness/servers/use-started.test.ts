/** What a test file asks for stands before its hooks and is gone after them, whatever fails in between. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { patient } from '../measure/crowding.ts';
import { inProject } from '../stage/project.ts';
import { runTestFiles } from '../stage/run-test-files.ts';
import { useFolder } from './use-started.ts';

const whole = ['+one', '+two', 'before', 'test', 'after', '-two', '-one'];

/** How a file goes on once it has asked for one and two; what is told by then. */
const cases: Readonly<Record<string, [text: string, status: string, told: string[]]>> = {
  all: ['', 'passed', whole],
  'a failing test': ["test('other', () => { throw new Error('no'); });", 'failed', whole],
  'a failing hook': [
    "beforeAll(() => { throw new Error('no'); });",
    'failed',
    ['+one', '+two', 'after', '-two', '-one'],
  ],
  'a third that does not start': [
    "useStarted(async () => { throw new Error('no'); });",
    'failed',
    ['+one', '+two', '-two', '-one'],
  ],
  'an end that fails': [
    "useStarted(async () => ({}), async () => { throw new Error('no'); });",
    'failed',
    whole,
  ],
};

/** A vitest of its own with a process for each file: seconds, and many times that on a busy machine. */
const runLimitMs = 180_000;

const folder = useFolder();
const file = (name: string) => join(folder.path, `${name}.txt`);

test(
  'what is started ends in the opposite order, whatever fails',
  async () => {
    const texts = Object.entries(cases).map(([name, [text]]) => [
      name,
      `import { appendFileSync } from 'node:fs';
     import { useStarted } from '${inProject('test/harness/servers/use-started.ts')}';
     const tell = (word) => appendFileSync(${JSON.stringify(file(name))}, word + '\\n');
     const use = (name) => useStarted(async () => ({ name, begun: tell('+' + name) }), async () => tell('-' + name));
     const one = use('one');
     use('two');
     ${text}
     beforeAll(() => tell('before'));
     afterAll(() => tell('after'));
     test('own', () => { tell('test'); expect({ ...one }).toEqual({ name: 'one', begun: undefined }); });
     expect(() => one.name).toThrow('not started yet');\n`,
    ]);
    const results = await runTestFiles(folder.path, Object.fromEntries(texts));
    for (const [name, [, status, told]] of Object.entries(cases)) {
      expect(results[name], name).toMatchObject({ status });
      expect((await readFile(file(name), 'utf8')).trim().split('\n'), name).toEqual(told);
    }
  },
  patient(runLimitMs),
);
