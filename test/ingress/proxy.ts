import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/dev/free-port.ts';
import { eventually } from '../harness/measure/eventually.ts';

const START_LIMIT_MS = 20_000;

/** A proxy in front of gateways, as a process of its own. */
export interface RunningProxy {
  /** Origin without a trailing slash. */
  readonly url: string;
  stop(): Promise<void>;
}

/** What one kind of proxy is started with. */
export interface ProxyPlan {
  /** Name of the environment variable in which the stage tells the program's path. */
  readonly variable: string;
  /** The configuration of a proxy that listens on `port` of 127.0.0.1 and may write below `folder`. */
  readonly configuration: (port: number, folder: string) => string;
  /** The command line for the configuration at `file`. */
  readonly args: (file: string, folder: string) => readonly string[];
}

/** Starts a proxy on a free port. Rejects with what it wrote when it does not listen. */
export async function startProxy({ variable, configuration, args }: ProxyPlan): Promise<RunningProxy> {
  const program = process.env[variable];
  if (program === undefined)
    throw new Error(`${variable} is not set: run the tests through "npm run test:ingress".`);
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-proxy-'));
  const port = await freePort();
  const file = join(folder, 'configuration.json'); // an ending that Envoy knows
  writeFileSync(file, configuration(port, folder));
  // A proxy must not outlive a test worker that was killed.
  const command = ['--pdeathsig', 'KILL', '--', program, ...args(file, folder)];
  const child = spawn('setpriv', command, {
    env: { ...process.env, LD_LIBRARY_PATH: process.env['TEST_PROXY_LIBRARIES'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
  const closed = once(child, 'close');
  const stop = async () => {
    child.kill('SIGKILL');
    await closed;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error('it ended');
      return (await accepts(port)) ? true : undefined;
    }, START_LIMIT_MS);
  } catch (error) {
    await stop();
    throw new Error(`${program} does not listen:\n${output}`, { cause: error });
  }
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** None of these proxies listens before it is configured. */
function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Annotations below one prefix, without it. */
export function annotationsBelow(
  prefix: string,
  annotations: Readonly<Record<string, string>>,
): Map<string, string> {
  const own = Object.entries(annotations).filter(([name]) => name.startsWith(prefix));
  return new Map(own.map(([name, value]) => [name.slice(prefix.length), value]));
}
