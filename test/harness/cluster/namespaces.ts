import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runQuietly } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import { toolPath } from './tools.ts';

/** Both ends of the wire between this machine and the node, and the pods behind it. */
export const hostAddress = '10.123.0.1';
export const nodeAddress = '10.123.0.2';
export const podNetwork = '10.244.0.0/24';

const link = 'gw-node';
/** Namespaces are there in milliseconds. */
const READY_MS = 10_000;
const POLL_MS = 20;

/** Kernel settings without a namespace that a kubelet sets; here it writes them into files that nobody reads. */
const tunables = [
  ...['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops'],
  ...['kernel/keys/root_maxkeys', 'kernel/keys/root_maxbytes'],
];

/** First process of the namespaces: what the node writes outside its own folder is memory of its own. */
const setUp = `
set -e
mount --make-rshared /
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs $folder; done
for name in ${tunables.join(' ')}; do
  copy=/run/tunables/$name
  mkdir -p "\${copy%/*}"
  cat /proc/sys/$name >"$copy"
  mount --bind "$copy" /proc/sys/$name
done
ip link set lo up
: >"$1"
exec "$2"
`;

export interface Namespaces {
  /** A program and its arguments run inside when they stand after this. */
  readonly enter: readonly [string, ...string[]];
  close(): Promise<void>;
}

/**
 * Network, mount and process namespaces of their own, wired to this machine. All of it ends with one process, which
 * ends with us. Throws StageError.
 */
export async function openNamespaces(folder: string, env: NodeJS.ProcessEnv): Promise<Namespaces> {
  const ready = join(folder, 'namespaces-ready');
  const unshare = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const first = ['sh', '-c', setUp, 'sh', ready, toolPath('pause')];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...unshare, ...first], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.once('error', (error) => {
    complaint += error.message;
  });
  const close = () => end(child);
  try {
    await waitFor(() => existsSync(ready) || child.exitCode !== null || child.pid === undefined);
    if (!existsSync(ready)) {
      throw new StageError(`Namespaces cannot be had here (${complaint.trim() || 'no reason given'}).`);
    }
    const pid = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
    const enter: Namespaces['enter'] = ['nsenter', '--target', pid, '--net', '--mount', '--pid', '--'];
    await wire(pid, enter, env);
    return { enter, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function wire(pid: string, enter: Namespaces['enter'], env: NodeJS.ProcessEnv): Promise<void> {
  const ip = (...args: string[]): Namespaces['enter'] => ['ip', ...args];
  const inside = (...args: string[]): Namespaces['enter'] => [...enter, ...args];
  const commands = [
    ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid),
    ip('address', 'add', `${hostAddress}/30`, 'dev', link),
    ip('link', 'set', link, 'up'),
    inside('ip', 'address', 'add', `${nodeAddress}/30`, 'dev', 'eth0'),
    inside('ip', 'link', 'set', 'eth0', 'up'),
    inside('ip', 'route', 'add', 'default', 'via', hostAddress),
    inside('sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward'),
    ip('route', 'add', podNetwork, 'via', nodeAddress),
  ];
  for (const [program, ...args] of commands) {
    const { code, output } = await runQuietly(program, args, { env });
    const command = [program, ...args].join(' ');
    if (code !== 0) throw new StageError(`The node's network cannot be made (${command}): ${output.trim()}`);
  }
}

/** The kernel takes the processes, mounts and the wire with the first process. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  await waitFor(() => !existsSync(`/sys/class/net/${link}`));
}

async function waitFor(isTrue: () => boolean): Promise<void> {
  const deadline = Date.now() + READY_MS;
  while (!isTrue() && Date.now() < deadline) await delay(POLL_MS);
}
