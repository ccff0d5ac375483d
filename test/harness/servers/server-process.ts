import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { delimiter } from 'node:path';
import { eventually } from '../measure/eventually.ts';

export interface ServerProcess {
  readonly pid: number;
  /** All it has said. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  /** A crash; resolves once it is gone. */
  close(): Promise<void>;
}

/** It must not outlive a test worker that was killed. */
const mortal = ['setpriv', '--pdeathsig', 'KILL'];
/** As nobody, which programs want that refuse to run as root, yet able to read what lies in root's folders. */
const nobody = [
  ...['--reuid', '65534', '--regid', '65534', '--clear-groups'],
  ...['--inh-caps', '-all,+dac_override', '--ambient-caps', '+dac_override'],
];

/** What comes before a program that refuses to run as root, and its arguments. */
export const unprivileged: readonly string[] = process.getuid?.() === 0 ? ['setpriv', ...nobody, '--'] : [];

/** A program on 127.0.0.1; resolves once `port` takes connections. */
export async function startServerProcess(
  program: string,
  args: readonly string[],
  port: number,
  { refusesRoot = false } = {},
): Promise<ServerProcess> {
  const libraries = [process.env['TEST_STORES_LIBRARIES'], process.env['TEST_REDIS_LIBRARIES']]
    .filter((one) => one !== undefined)
    .join(delimiter);
  const asNobody = refusesRoot && process.getuid?.() === 0 ? nobody : [];
  const [command = program, ...rest] = [...mortal, ...asNobody, '--', program, ...args];
  const child = spawn(command, rest, {
    env: { ...process.env, LD_LIBRARY_PATH: libraries },
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
