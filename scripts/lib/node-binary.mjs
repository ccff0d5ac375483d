import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alone } from './alone.mjs';
import { isStopped } from './children.mjs';
import { npmReason, runNpm } from './npm.mjs';
import { watchFolder } from './progress.mjs';
import { fetchedNode, inProject, LaunchError, minimumNode } from './project.mjs';

/**
 * The path of a Node that is new enough: this one, or one fetched through npm into `.node/` of the checkout, once.
 * Not by `npm exec`: what it leaves when it is stopped half-way breaks every later run of it. Throws LaunchError.
 */
export async function findNode() {
  if (isNewEnough(process.versions.node)) return process.execPath;
  return (
    fetchedBefore() ??
    (await alone(inProject('.node.lock'), async () => fetchedBefore() ?? (await fetchNode())))
  );
}

/** The package of npm that is Node for a platform and nothing else; it has no install script. */
export function nodePackage(platform, arch) {
  const system = platform === 'win32' ? 'win' : platform;
  return `${platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node'}-${system}-${arch}`;
}

async function fetchNode() {
  console.log(`Node ${process.versions.node} is too old; fetching Node ${fetchedNode} through npm ...`);
  const place = inProject('.node.partial');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const dependencies = { [nodePackage(process.platform, process.arch)]: fetchedNode };
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const progress = watchFolder('Node', join(place, 'node_modules'));
  const { code, output } = await runNpm(['install', '--ignore-scripts', '--no-package-lock'], place);
  progress.end();
  if (isStopped()) return process.execPath;
  if (code === 0) moveIn(place);
  const path = fetchedBefore();
  if (path !== null) return path;
  const why = code === 0 ? 'what came does not run' : npmReason(output);
  throw new LaunchError(
    `Node ${minimumNode.join('.')} or newer is needed, this is ${process.versions.node}, and none could be fetched (${why}): install Node 24.`,
  );
}

/** Whole or not at all, so that a stop leaves nothing that looks fetched. */
function moveIn(place) {
  rmSync(inProject('.node'), { recursive: true, force: true });
  renameSync(place, inProject('.node'));
}

function fetchedBefore() {
  const folder = inProject('.node', 'node_modules', nodePackage(process.platform, process.arch));
  if (!existsSync(join(folder, 'package.json'))) return null;
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const path = join(folder, bin.node);
  return worksWell(path) ? path : null;
}

function worksWell(path) {
  const { status, stdout } = spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' });
  return status === 0 && isNewEnough(stdout.trim());
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > minimumNode[0] || (major === minimumNode[0] && minor >= minimumNode[1]);
}
