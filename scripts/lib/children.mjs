import { spawn } from 'node:child_process';
import { spawnOptions, stopOn } from './stop.mjs';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** A child that ignores its stop signal for this long is killed. */
const STOP_TIMEOUT_MS = 30_000;

const running = new Set();
let stopped = false;

/** True once a stop signal came. */
export function isStopped() {
  return stopped;
}

/** From now on a stop signal goes to the running children, and this process ends only after them. */
export function handleStopSignals() {
  for (const name of stopSignals) process.on(name, () => stopChildren(name));
  process.on('disconnect', () => stopChildren('SIGTERM')); // the launcher above us was killed
  process.channel?.unref();
}

function stopChildren(signal) {
  stopped = true;
  for (const child of running) stopChild(child, signal);
}

function stopChild(child, signal) {
  stopOn(process.platform)(child, signal);
  setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS).unref();
}

/**
 * Runs a program to its end: `{ code, output }`, where code is null after a signal or a failed start. `output` holds
 * what it wrote when `stdio` asks for pipes. With an `ipc` channel in `stdio` the child learns of our own sudden
 * death. With `detached` it is expendable: a stop signal kills it and its children at once.
 */
export function run(program, args, options = {}) {
  if (stopped) return Promise.resolve({ code: null, output: '' });
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: 'inherit', ...spawnOptions(process.platform, options) });
    child.isExpendable = options.detached === true && child.pid !== undefined;
    running.add(child);
    let output = '';
    const collect = (bytes) => {
      output += bytes;
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    const finish = (code, error = '') => {
      running.delete(child);
      done({ code, output: output + error });
    };
    child.once('error', (error) => finish(null, error.message));
    child.once('close', (code) => finish(code));
  });
}
