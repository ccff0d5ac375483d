import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { eventually } from '../../harness/measure/eventually.ts';

export interface ServerProcess {
  readonly pid: number;
  /** All it has said. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  /** A crash; resolves once it is gone. */
  close(): Promise<void>;
}

/**
 * As nobody, which programs want that refuse to run as root, yet able to read what lies in root's folders. It must not
 * outlive a test worker that was killed.
 */
const unprivileged = [
  ...['--reuid', '65534', '--regid', '65534', '--clear-groups'],
  ...['--inh-caps', '-all,+dac_override', '--ambient-caps', '+dac_override', '--pdeathsig', 'KILL', '--'],
];

/** A program on 127.0.0.1; resolves once `port` takes connections. */
export async function startServerProcess(
  program: string,
  args: readonly string[],
  port: number,
): Promise<ServerProcess> {
  const libraries = process.env['TEST_STORES_LIBRARIES'];
  const isRoot = process.getuid?.() === 0;
  const [command, ...rest] = [...(isRoot ? ['setpriv', ...unprivileged] : []), program, ...args];
  const child = spawn(command ?? program, rest, {
    env: { ...process.env, ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      said += bytes.toString();
    });
  }
  let failure: Error | null = null;
  child.on('error', (error) => {
    failure = error;
  });
  const gone = new Promise((resolve) => child.once('close', resolve));
  const close = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  try {
    await eventually(async () => {
      if (failure !== null) throw failure;
      if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
      return (await accepts(port)) || undefined;
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    pid: child.pid ?? 0,
    output: () => said,
    signal: (name) => void child.kill(name),
    close,
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('error', () => done(false));
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
  });
}
