import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Child {
  readonly process: ChildProcess;
  /** Resolves with everything written so far once the text has appeared; rejects when the child ends before. */
  printed(text: string): Promise<string>;
  /** Exit code (null after a signal) and all output, once it ended. */
  ended(): Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** Runs a TypeScript or JavaScript file, of this project unless told, under the Node that runs the tests. */
export function runNode(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = process.cwd()): Child {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, ...env },
    // The channel tells it when the tests are killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const closed = once(child, 'close');
  return {
    process: child,
    printed: (wanted) =>
      new Promise((done, fail) => {
        const look = () => {
          if (stdout.includes(wanted)) done(stdout);
        };
        child.stdout?.on('data', look);
        child.once('close', () => fail(new Error(`it ended without "${wanted}": ${stdout}${stderr}`)));
        look();
      }),
    async ended() {
      await closed;
      return { code: child.exitCode, stdout, stderr };
    },
  };
}
