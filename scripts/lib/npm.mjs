import { win32 } from 'node:path';
import { run } from './children.mjs';
import { root } from './project.mjs';

const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];

/**
 * Runs npm with its output collected: the one that started us when there is one, else the one on PATH. It takes
 * many seconds to react to a stop signal, so it is killed instead; what it leaves is found and repaired next time.
 */
export function runNpm(args, folder = root) {
  const options = { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true };
  const [program, ...first] = npmCommand(process);
  return run(program, [...first, ...quiet, ...args], options);
}

/** On Windows `npm` is a script that only a shell runs; there it lies beside Node. */
export function npmCommand({ env, execPath, platform }) {
  const own = env.npm_execpath;
  if (own?.endsWith('npm-cli.js')) return [execPath, own];
  if (platform !== 'win32') return ['npm'];
  return [execPath, win32.join(win32.dirname(execPath), 'node_modules', 'npm', 'bin', 'npm-cli.js')];
}

/** The line of npm's output that says most about a failure. */
export function npmReason(output) {
  const lines = output.split('\n').map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim());
  const code = lines.find((line) => line.startsWith('code '))?.slice('code '.length);
  const text = lines.find((line) => line !== '' && !/^(code|errno|syscall|path) /.test(line));
  return [code, text].filter(Boolean).join(': ') || 'no reason given';
}
