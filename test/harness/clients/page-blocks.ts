import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inProject } from '../stage/project.ts';

const run = promisify(execFile);

/** A fenced block of a document. */
export interface Block {
  /** As it is written behind the fence; empty where nothing is. */
  readonly language: string;
  /** Without the indentation of a list. */
  readonly text: string;
}

export function blocksOf(document: string): Block[] {
  const text = readFileSync(inProject(document), 'utf8');
  return [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)].map(
    ([, indentation = '', language = '', block = '']) => ({
      language,
      text: block.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
    }),
  );
}

/** The texts of the blocks in one language. */
export function blocksIn(document: string, language: string): string[] {
  return blocksOf(document)
    .filter((block) => block.language === language)
    .map(({ text }) => text);
}

/** How long one block may take; a first start of an interpreter with large packages takes seconds. */
const blockLimitMs = 60_000;

/** `GW` and `KEY`, as the pages call the gateway and the service key. */
type Variables = Readonly<Record<string, string>>;

async function printed(program: string, args: readonly string[], env: Variables): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  const { stdout } = await run(program, args, { env: { PATH, HOME, ...env }, timeout: blockLimitMs });
  return stdout;
}

/** What a program of a page prints on Node; `modules` is the node_modules that it imports from. */
export async function printedByNode(block: string, modules: string, env: Variables): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-test-'));
  try {
    symlinkSync(modules, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'page.mts'), block);
    return await printed(process.execPath, [join(folder, 'page.mts')], env);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function printedByPython(block: string, interpreter: string, env: Variables): Promise<string> {
  return printed(interpreter, ['-c', block], env);
}

/** What the shell prints; a command that fails ends it with an error. */
export function printedByShell(block: string, env: Variables): Promise<string> {
  return printed('bash', ['-euo', 'pipefail', '-c', block], env);
}
