import { spawn } from 'node:child_process';

/** On Windows a group of processes is none of signals, and a detached program gets a window of its own. */
export function spawnOptions(platform, options) {
  return platform === 'win32' ? { ...options, detached: false, windowsHide: true } : options;
}

/** How a child is stopped by this platform's means; `start` and `kill` are those of Node. */
export function stopOn(platform, start = spawn, kill = (pid, signal) => process.kill(pid, signal)) {
  return platform === 'win32'
    ? (child) => stopOnWindows(child, start)
    : (child, signal) => stop(child, signal, kill);
}

function stop(child, signal, kill) {
  if (child.isExpendable) kill(-child.pid, 'SIGKILL');
  else child.kill(signal);
}

/** There every signal that is sent kills at once: who has our channel sees its end as the wish to stop. */
function stopOnWindows(child, start) {
  if (child.isExpendable) {
    start('taskkill', ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore' }).once('error', () =>
      child.kill(),
    );
  } else if (child.connected) child.disconnect();
  else child.kill();
}
