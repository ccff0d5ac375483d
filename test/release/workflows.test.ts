/** actionlint finds nothing in the workflows, and would. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { filesBelow } from '../docs/documents.ts';
import { toolPath } from '../harness/cluster/tools.ts';
import { inProject, root } from '../harness/stage/project.ts';

const workflows = filesBelow('.github/workflows', '.yml');
const lint = (...paths: string[]) =>
  promisify(execFile)(toolPath('actionlint'), ['-no-color', ...paths], { cwd: root });

test('actionlint has no word against any workflow', async () => {
  expect(workflows.length).toBe(3);
  expect((await lint(...workflows)).stdout).toBe('');
});

test('it sees a workflow that was made wrong', async () => {
  const path = join(inject('release').folder, 'wrong.yml');
  const text = readFileSync(inProject('.github/workflows/release.yml'), 'utf8');
  writeFileSync(
    path,
    text.replaceAll('needs: test', 'needs: nothing').replace('timeout-minutes', 'timeout-hours'),
  );
  await expect(lint(path)).rejects.toMatchObject({
    stdout: expect.stringMatching(/nothing[\s\S]*timeout-hours|timeout-hours[\s\S]*nothing/),
  });
});
