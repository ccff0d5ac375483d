import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const mount = '/sys/fs/cgroup';
const isUnified = () => existsSync(join(mount, 'cgroup.controllers'));
/** Processes that were killed leave their cgroups a moment later. */
const GONE_MS = 5_000;
const POLL_MS = 50;

export interface Cgroup {
  readonly name: string;
  remove(): Promise<void>;
}

/** A cgroup of this name under the root, in every hierarchy: what the kubelet makes lies below and goes with it. */
export function openCgroup(name: string): Cgroup {
  const folders = hierarchies().map((path) => join(path, name));
  for (const folder of folders) mkdirSync(folder);
  return {
    name: `/${name}`,
    async remove() {
      const deadline = Date.now() + GONE_MS;
      while (!folders.map(removeTree).every(Boolean) && Date.now() < deadline) await delay(POLL_MS);
    },
  };
}

function hierarchies(): string[] {
  if (!isUnified()) {
    return readdirSync(mount)
      .map((entry) => join(mount, entry))
      .filter((path) => existsSync(join(path, 'cgroup.procs')));
  }
  const controllers = readFileSync(join(mount, 'cgroup.controllers'), 'utf8').trim().split(' ');
  writeFileSync(join(mount, 'cgroup.subtree_control'), controllers.map((each) => `+${each}`).join(' '));
  return [mount];
}

/** Innermost first; whether all of it is gone. */
function removeTree(folder: string): boolean {
  if (!existsSync(folder)) return true;
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const isEmpty = below.map((entry) => removeTree(join(folder, entry.name))).every(Boolean);
  if (!isEmpty) return false;
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false; // a process is still leaving
  }
}
