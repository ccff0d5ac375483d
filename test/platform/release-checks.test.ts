/** What `npm run release` asks before anything leaves the machine, and what it cuts from the changelog. */
import { describe, expect, test } from 'vitest';
import { releaseNotes } from '../../scripts/release/changelog.ts';
import { releaseChecks } from '../../scripts/release/checks.ts';
import { digestIn } from '../../scripts/release/digest.ts';
import type { ReleaseFacts } from '../../scripts/release/facts.ts';

const changelog = `# Changelog

What changes.

## [Unreleased]

### Added
- Not out yet.

## [1.2.0] - 2026-11-22

### Added
- A thing.

### Fixed
- Another.

## [1.1.0] - 2026-10-01

- The first one.

## [1.0.0] - 2026-09-01
`;

const facts: ReleaseFacts = {
  version: '1.2.0',
  revision: 'a'.repeat(40),
  committedAt: Date.parse('2026-11-22T12:00:00Z') / 1000,
  uncommitted: [],
  tags: { 'v1.1.0': 'b'.repeat(40) },
  startedBy: null,
  registry: 'registry.example.com/team',
  changelog,
  stale: [],
};

const problemsOf = (changed: Partial<ReleaseFacts>) =>
  releaseChecks({ ...facts, ...changed }).flatMap(({ problem }) => problem ?? []);

describe('a commit may be released', () => {
  test('when it is whole, said what it brings, and its tag is new', () => {
    expect(problemsOf({})).toEqual([]);
  });

  test('from its tag, as the workflow does', () => {
    expect(problemsOf({ tags: { 'v1.2.0': facts.revision }, startedBy: 'v1.2.0' })).toEqual([]);
  });

  test.each<[string, Partial<ReleaseFacts>, RegExp]>([
    ['whose version is none', { version: '1.2' }, /package\.json says 1\.2/],
    ['whose version an image tag cannot hold', { version: '1.2.0+build' }, /package\.json says/],
    ['with changes that are not in it', { uncommitted: [' M src/main.ts', '?? a'] }, /^src\/main\.ts, a$/],
    ['with many such changes', { uncommitted: Array(9).fill('?? file') }, /and 4 more$/],
    ['with files that do not follow', { stale: ['k8s/README.md'] }, /^k8s\/README\.md: npm run generate/],
    ['that says nothing of itself', { changelog: '## [Unreleased]\n- A\n' }, /"## \[1\.2\.0\] - 2026-11-22"/],
    ['from the tag of another version', { startedBy: 'v1.3.0' }, /^v1\.3\.0 did: tag .* or v1\.2\.0$/],
    ['that has nowhere to go', { startedBy: 'v1.2.0', registry: null }, /^set the variable RELEASE_REGISTRY/],
    ['whose version is out', { tags: { 'v1.2.0': 'b'.repeat(40) } }, /^it is at bbbbbbbbbbbb: raise/],
  ])('but not one %s', (_which, changed, problem) => {
    const problems = problemsOf(changed);
    expect(
      problems.some((text) => problem.test(text)),
      problems.join('\n'),
    ).toBe(true);
  });
});

test('a digest is found among the warnings of the program that names it, and nothing else is taken for one', () => {
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
  const command = ['docker', 'inspect'] as const;
  expect(digestIn(`WARNING: no builder\n${digest}\n`, command)).toBe(digest);
  for (const output of ['', 'sha256:12', `${digest}0`, digest.slice(0, -1)]) {
    expect(() => digestIn(output, command)).toThrow(/^docker inspect named no digest/);
  }
});

test.each([
  ['1.2.0', '### Added\n- A thing.\n\n### Fixed\n- Another.\n'],
  ['1.1.0', '- The first one.\n'],
  ['1.0.0', null],
  ['1.2', null],
  ['Unreleased', null],
])('the notes of %s are what stands under its heading', (version, notes) => {
  expect(releaseNotes(changelog, version)).toBe(notes);
});
