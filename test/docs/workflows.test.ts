/** .github/workflows: what they may do, what they trust, and that they run what a person runs. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { inProject } from '../harness/stage/project.ts';
import { exists, filesBelow, readDocument } from './documents.ts';

interface Job {
  readonly 'timeout-minutes'?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly uses?: string;
  readonly container?: { readonly image: string; readonly options: string };
  readonly steps?: readonly { readonly uses?: string; readonly run?: string }[];
  readonly strategy?: { readonly matrix: { readonly stage: readonly string[] } };
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const workflows = filesBelow('.github/workflows', '.yml').map((path) => ({
  path,
  text: readDocument(path),
  workflow: parse(readDocument(path)) as Workflow,
}));
const { scripts } = JSON.parse(readDocument('package.json')) as { scripts: Record<string, string> };
const workflowNamed = (name: string) => workflows.find(({ path }) => path.endsWith(`/${name}.yml`))?.workflow;

describe.each(workflows)('$path', ({ text, workflow }) => {
  const jobs = Object.values(workflow.jobs);

  test('may read the code, and more only job by job', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    expect(text).not.toMatch(/pull_request_target|write-all/);
  });

  test('trusts actions of GitHub itself only, at a commit that no tag can move', () => {
    const named = [...text.matchAll(/uses: (?!\.\/)(.+)/g)].map(([, action = '']) => action);
    for (const action of named) expect(action).toMatch(/^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    expect(text.match(/actions\/checkout@/g)?.length).toBe(text.match(/persist-credentials: false/g)?.length);
  });

  test('ends by itself', () => {
    for (const job of jobs)
      if (job.uses === undefined) expect(job['timeout-minutes']).toBeLessThanOrEqual(60);
  });

  test('puts nothing that others write into a command', () => {
    const commands = jobs.flatMap(({ steps = [] }) => steps.flatMap(({ run }) => run ?? []));
    const put = commands.flatMap((run) => run.match(/\$\{\{[^}]*\}\}/g) ?? []);
    expect(put.filter((expression) => !/^\$\{\{ matrix\.\w+ \}\}$/.test(expression))).toEqual([]);
  });

  test('runs scripts that exist', () => {
    const named = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

test('an action has one version in all of them', () => {
  const versions = new Map<string, Set<string>>();
  for (const { text } of workflows) {
    for (const [, action = '', version = ''] of text.matchAll(/uses: (actions\/[\w-]+)@(.+)/g)) {
      versions.set(action, new Set([...(versions.get(action) ?? []), version]));
    }
  }
  expect(versions.size).toBeGreaterThanOrEqual(4);
  for (const [action, found] of versions) expect([...found], action).toHaveLength(1);
});

test('the tests are the stages of .ci/run', () => {
  const stages = [...readFileSync(inProject('.ci/run'), 'utf8').matchAll(/^.*\bstage '([^']+)'/gm)].map(
    ([, command = '']) => command.replace(/^npm (run )?/, ''),
  );
  const { stage } = workflowNamed('test')?.jobs['stage']?.strategy?.matrix ?? { stage: [] };
  expect(stages.length).toBeGreaterThan(8);
  expect([...stage].sort()).toEqual([...new Set(stages)].sort());
});

test('the tests run as root where the packages have the names that stages ask for', () => {
  const { container } = workflowNamed('test')?.jobs['stage'] ?? {};
  expect(container).toEqual({ image: 'buildpack-deps:bookworm', options: '--privileged' });
});

test('a release waits for all tests, and only its last job may write and sign', () => {
  const { test: tests, publish } = workflowNamed('release')?.jobs ?? {};
  expect(tests?.uses).toBe('./.github/workflows/test.yml');
  expect(publish).toMatchObject({
    needs: 'test',
    permissions: { contents: 'write', 'id-token': 'write', attestations: 'write' },
  });
  expect(publish?.steps?.map(({ run }) => run)).toContain('npm run release');
});

test('Dependabot watches every folder that pins packages, and none that does not exist', () => {
  const { updates } = parse(readDocument('.github/dependabot.yml')) as {
    updates: { 'package-ecosystem': string; directory?: string; directories?: string[] }[];
  };
  const files: Record<string, string> = {
    ...{ npm: 'package.json', pip: 'requirements.txt', gomod: 'go.mod' },
  };
  const watched = updates.flatMap(
    ({ 'package-ecosystem': kind, directory, directories = [directory ?? ''] }) =>
      directories.map((folder) => `${folder.replace(/\/$/, '')}/${files[kind] ?? '.github'}`),
  );
  for (const path of watched) expect(exists(`.${path}`), path).toBe(true);
  const pins = ['package-lock.json', 'requirements.txt', 'go.mod'].flatMap((name) =>
    filesBelow('test', name),
  );
  for (const path of pins) expect(watched).toContain(`/${path.replace('package-lock', 'package')}`);
});
