import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isStopped } from './children.mjs';
import { npmReason, runNpm } from './npm.mjs';
import { fetchedNode, inCache, LaunchError, minimumNode } from './project.mjs';

/** `locateNode`, remembered for the next time. */
export async function findNode() {
  const path = await locateNode();
  rememberNode(path);
  return path;
}

/**
 * The path of a Node that is new enough: this one, the one remembered from last time, or one fetched through npm.
 * It is run directly afterwards, never inside `npm exec`, which loses signals. Throws LaunchError.
 */
export async function locateNode() {
  if (isNewEnough(process.versions.node)) return process.execPath;
  const remembered = readRemembered();
  if (remembered !== null) return remembered;
  console.log(`Node ${process.versions.node} is too old; fetching Node ${fetchedNode} through npm ...`);
  const question = ['exec', '--yes', `--package=node@${fetchedNode}`, '--', 'node', '-p', 'process.execPath'];
  const { code, output } = await runNpm(question);
  const path = output.trim().split('\n').at(-1);
  if (code === 0 && worksWell(path)) return path;
  if (isStopped()) return process.execPath;
  const why = code === 0 ? 'what came does not run' : npmReason(output);
  throw new LaunchError(
    `Node ${minimumNode.join('.')} or newer is needed, this is ${process.versions.node}, and none could be fetched (${why}): install Node 24.`,
  );
}

/** Keeps the path beside the packages, so not before they are installed. */
export function rememberNode(path) {
  if (path === process.execPath) return;
  mkdirSync(dirname(memory()), { recursive: true });
  writeFileSync(memory(), path);
}

function memory() {
  return inCache('node-path');
}

function readRemembered() {
  try {
    const path = readFileSync(memory(), 'utf8');
    return worksWell(path) ? path : null;
  } catch {
    return null;
  }
}

function worksWell(path) {
  const { status, stdout } = spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' });
  return status === 0 && isNewEnough(stdout.trim());
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > minimumNode[0] || (major === minimumNode[0] && minor >= minimumNode[1]);
}
