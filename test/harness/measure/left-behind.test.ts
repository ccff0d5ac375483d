/** What a test file leaves behind makes it fail. */
import { expect, test } from 'vitest';
import { useFolder } from '../servers/use-started.ts';
import { runTestFiles } from '../stage/run-test-files.ts';
import { patient } from './crowding.ts';
import { leftBehind } from './left-behind.ts';

test.each<[string, string[], string[], string[]]>([
  ['nothing', [], [], []],
  ['what was there', ['Timeout', 'PipeWrap'], ['PipeWrap', 'Timeout'], []],
  ['what is gone', ['Timeout'], [], []],
  ['one more of a kind', ['Timeout'], ['Timeout', 'Timeout'], ['Timeout']],
  ['another kind', ['Timeout'], ['TCPServerWrap'], ['TCPServerWrap']],
])('left behind: %s', (_name, before, now, left) => {
  expect(leftBehind(before, now)).toEqual(left);
});

/** Ends when its parent does. */
const child =
  "spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] })";
const files: Readonly<Record<string, [body: string, found: RegExp | null]>> = {
  nothing: ['', null],
  'a timer that ends soon': ['setTimeout(() => {}, 100)', null],
  'a timer that keeps nobody': ['setInterval(() => {}, 1000).unref()', null],
  'a timer': ['setInterval(() => {}, 1000)', /left behind: Timeout$/],
  'a timer of a try that failed': [
    'if (task.result.retryCount === 0) { setInterval(() => {}, 1000); throw new Error("half-way"); }',
    null,
  ],
  'a server': ["await new Promise((up) => createServer().listen(0, '127.0.0.1', up))", /TCPServerWrap/],
  'a connection': [
    `const server = createServer().listen(0, '127.0.0.1', () => connect(server.address().port, '127.0.0.1'));
     await once(server, 'connection'); server.close()`,
    /TCPSocketWrap/,
  ],
  'a process': [child, /process: .*stdin\.resume/],
  'a process that is on its own': [
    `const one = ${child}; one.unref(); one.stdin.unref()`,
    /process: .*stdin\.resume/,
  ],
};

/** A vitest of its own with a process for each file: seconds, and many times that on a busy machine. */
const runLimitMs = 180_000;

const folder = useFolder();

test(
  'a test file that leaves something behind fails, and says what',
  async () => {
    const from = ['node:child_process', 'node:events', 'node:net'].map(
      (name) => `...await import('${name}')`,
    );
    const names = `const { spawn, once, createServer, connect } = { ${from.join(', ')} };`;
    const texts = Object.entries(files).map(([name, [body]]) => {
      return [name, `${names}\ntest('one', { retry: 1 }, async ({ task }) => { ${body} });\n`];
    });
    const setupFiles = ['test/harness/measure/leave-nothing-behind.ts'];
    const results = await runTestFiles(folder.path, Object.fromEntries(texts), setupFiles);
    for (const [name, [, found]] of Object.entries(files)) {
      if (found === null) expect(results[name], name).toMatchObject({ status: 'passed' });
      else
        expect(results[name], name).toMatchObject({
          status: 'failed',
          message: expect.stringMatching(found),
        });
    }
  },
  patient(runLimitMs),
);
