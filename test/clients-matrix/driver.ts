import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** What a client is asked to do, as its user would. */
export interface Call {
  readonly do: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Instead of the user's own service key. */
  readonly key?: string;
  readonly temperature?: number;
  /** With the retries that the client makes of itself. */
  readonly retry?: boolean;
}

/** What the client's user then finds. */
export interface Seen {
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly finish: string;
  /** Input, output, total. */
  readonly usage: readonly [number, number, number] | null;
  /** Where the client shows it. */
  readonly gateway?: Readonly<Record<string, unknown>>;
  /** How many deltas a stream had. */
  readonly pieces?: number;
  readonly object?: unknown;
}

/** An error, as the client's user finds it. */
export interface Failure {
  readonly class: string;
  readonly status: number | null;
  readonly type: string | null;
  readonly code: string | null;
  readonly message: string;
  readonly retryAfter: string | null;
  readonly requestId: string | null;
  /** What had been streamed before. */
  readonly text: string;
}

export interface Reply {
  readonly seen?: Seen;
  readonly failure?: Failure;
}

/** Longer than any client needs for one call, a retry included. */
const callLimitMs = 20_000;

/** A process that runs one client. One call at a time; a call without an end ends the process. */
export interface Driver {
  readonly ended: boolean;
  ask(call: Call): Promise<Reply>;
  close(): Promise<void>;
}

/** Starts a driver; nothing of our own environment configures the client behind its back. */
export function startDriver(
  program: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Driver {
  const { PATH, HOME, TMPDIR } = process.env;
  const env = { PATH, HOME, TMPDIR, PYTHONDONTWRITEBYTECODE: '1', ...settings };
  const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let complaints = '';
  let ended = false;
  child.stderr.on('data', (bytes: Buffer) => {
    complaints += bytes.toString();
  });
  child.stdin.on('error', () => {});
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      complaints += error.message;
      resolve();
    });
    child.once('close', () => resolve());
  });
  void exited.then(() => {
    ended = true;
  });
  // What it could not be asked any more is told by its end.
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    get ended() {
      return ended;
    },
    ask: async (call) => {
      child.stdin.write(`${JSON.stringify(call)}\n`);
      const killer = setTimeout(() => child.kill('SIGKILL'), callLimitMs);
      const { value, done } = await lines.next();
      clearTimeout(killer);
      if (done !== true) return JSON.parse(value) as Reply;
      await exited;
      throw new Error(`The driver ended during "${call.do}": ${complaints}`);
    },
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
