/** The TypeScript that documents show compiles where they say it belongs. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { aroundEach, expect, test } from 'vitest';
import { blocksIn } from '../harness/clients/page-blocks.ts';
import { patient } from '../harness/measure/crowding.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { inProject } from '../harness/stage/project.ts';

/** Against hanging only: seconds, and many times that on a busy machine. */
const compileLimitMs = 120_000;

const folder = useFolder(aroundEach);

/** Puts `lines` before the first occurrence of `mark` in a file of the copy. */
function insert(path: string, mark: string, lines: string): void {
  const file = join(folder.path, path);
  const text = readFileSync(file, 'utf8');
  expect(text, path).toContain(mark);
  writeFileSync(file, text.replace(mark, `${lines}\n${mark}`));
}

test(
  'the examples of CONTRIBUTING.md and of the page for Node compile, and no more is needed for a provider',
  async () => {
    for (const name of ['src', 'test/harness', 'package.json', 'tsconfig.json'])
      cpSync(inProject(name), join(folder.path, name), { recursive: true });
    symlinkSync(inProject('node_modules'), join(folder.path, 'node_modules'));

    const [name = '', dialect = '', prelude = '', ...others] = blocksIn('CONTRIBUTING.md', 'ts').map((text) =>
      text.trim(),
    );
    insert('src/core/provider-name.ts', '  sarvam: {', name);
    insert(
      'src/environment.ts',
      '  GW_SARVAM_BASE_URL:',
      "  GW_ACME_BASE_URL: httpUrl.optional().describe('x'),",
    );
    insert('src/settings.ts', '    sarvam: env.', '    acme: env.GW_ACME_BASE_URL,');
    writeFileSync(join(folder.path, 'src/providers/openai-compatible/acme.ts'), dialect);
    insert(
      'src/providers/registry.ts',
      'import { openai }',
      "import { acme } from './openai-compatible/acme.ts';",
    );
    insert('src/providers/registry.ts', '  openai,', '  acme,');
    mkdirSync(join(folder.path, 'test/api'));
    writeFileSync(join(folder.path, 'test/api/example.test.ts'), prelude);
    expect(others).toEqual([]);
    const clients = blocksIn('docs/integrations/openai-node.md', 'ts');
    expect(clients).toHaveLength(4);
    for (const [index, client] of clients.entries())
      writeFileSync(join(folder.path, `src/example-${index}.ts`), client);

    const compiler = inProject('node_modules/typescript/bin/tsc');
    // An example names what it shows, and need not use it.
    const args = [compiler, '-p', folder.path, '--noUnusedLocals', 'false'];
    const { stdout } = await promisify(execFile)(process.execPath, args).catch((error) => error);
    expect(stdout).toBe('');
  },
  patient(compileLimitMs),
);
