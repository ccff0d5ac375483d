import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../src/dev/free-port.ts';
import { inProject, LaunchError, root } from '../lib/project.mjs';

const GATEWAY_START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 10_000;
const CALL_LIMIT_MS = 10_000;
const POLL_MS = 20;

/** A process of this folder: `url` (null if it serves nothing), `ask(message)`, which awaits its answer, `stop()`. */
export async function startWorker(file, args = []) {
  const child = fork(inProject('scripts', 'bench', file), args, { cwd: root });
  const url = await reply(child, file);
  const ask = (message) => {
    const answer = reply(child, file);
    child.send(message);
    return answer;
  };
  return { pid: child.pid, url, headers: {}, ask, stop: () => stop(child) };
}

function reply(child, name) {
  return new Promise((resolve, reject) => {
    const settle = (work) => {
      child.off('message', onMessage);
      child.off('exit', onExit);
      work();
    };
    const onExit = () => settle(() => reject(new LaunchError(`${name} ended.`)));
    const onMessage = ({ result, problem }) => {
      if (problem === undefined) settle(() => resolve(result));
      else settle(() => reject(new LaunchError(`${name}: ${problem}`)));
    };
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await exited;
  clearTimeout(killer);
}

/** What all gateways of one run share: database, sealing key, vendor. */
export function gatewayEnvironment(databaseUrl, vendorUrl) {
  const ours = /^(GW_|OTEL_|DATABASE_|REDIS_|PORT$)/;
  const others = Object.entries(process.env).filter(([name]) => !ours.test(name));
  return {
    ...Object.fromEntries(others),
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    GW_SEALING_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    GW_OPENAI_BASE_URL: vendorUrl,
    GW_HOST: '127.0.0.1',
    GW_ADMIN_HOST: '127.0.0.1',
    GW_DRAIN_SECONDS: '1',
  };
}

/** `dist/main.js` as an operator runs it, its log in a file of the folder. `preload` names files of this folder. */
export async function startGateway(folder, env, preload = []) {
  const name = `gateway-${randomBytes(4).toString('hex')}`;
  const log = join(folder, `${name}.log`);
  const output = openSync(log, 'w');
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = fork(inProject('dist', 'main.js'), [], {
    cwd: root,
    env: { ...env, PORT: port, GW_ADMIN_PORT: adminPort, GW_DATA_DIR: join(folder, name) },
    execArgv: ['end-with-parent.mjs', ...preload].flatMap((file) => [
      '--import',
      inProject('scripts', 'bench', file),
    ]),
    stdio: ['ignore', output, output, 'ipc'],
  });
  const limit = Date.now() + GATEWAY_START_LIMIT_MS;
  for (;;) {
    if (await isReady(adminPort)) {
      return { pid: child.pid, url: `http://127.0.0.1:${port}`, headers: {}, stop: () => stop(child) };
    }
    if (child.exitCode !== null || Date.now() > limit) {
      await stop(child);
      throw new LaunchError(`The gateway did not start:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    }
    await delay(POLL_MS);
  }
}

async function isReady(adminPort) {
  const signal = AbortSignal.timeout(CALL_LIMIT_MS);
  const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`, { signal }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}

/** A user with an OpenAI key: the headers of their requests. */
export async function registerUser(url) {
  const user = await post(`${url}/v1/users`, {}, { email: 'bench@example.com' });
  const headers = { authorization: `Bearer ${user.api_key}`, 'content-type': 'application/json' };
  await post(`${url}/v1/keys`, headers, { provider: 'openai', api_key: 'sk-bench' });
  return headers;
}

async function post(url, headers, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_LIMIT_MS),
  });
  const text = await response.text();
  if (!response.ok) throw new LaunchError(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

/**
 * CPU time of a process so far in microseconds, user and system, of all threads that are alive. It is what the scheduler
 * counts, in nanoseconds; /proc/<pid>/stat would only tell hundredths of a second.
 */
export function cpuMicroseconds(pid) {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]);
  }
  return nanoseconds / 1_000;
}

/** Memory of a process that is in RAM, in MiB. */
export function residentMib(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}
