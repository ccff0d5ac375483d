/** What the documents tell kubectl to work on is there after the installation that they teach. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { documents, readDocument } from './documents.ts';

const { name: chart } = parse(readDocument('charts/model-gateway/Chart.yaml')) as { readonly name: string };

/** `model-gateway.fullname` of templates/_names.tpl, with the values that the documents give: no name among them. */
const fullName = (release: string): string => (release.includes(chart) ? release : `${release}-${chart}`);

/** Lines of a shell, continued ones as one, and sentences over the end of a line too. */
const pages = documents().map((path) => ({ path, text: readDocument(path).replace(/\s*\\?\n/g, ' ') }));

interface Placed {
  readonly name: string;
  readonly namespace: string;
}

/** Every install line, as the Deployment that it makes. */
const installed: readonly Placed[] = pages.flatMap(({ text }) =>
  [...text.matchAll(/helm install ([a-z-]+) \S+(?: --version \S+)? -n ([a-z-]+)/g)].map(
    ([, release = '', namespace = '']) => ({ name: fullName(release), namespace }),
  ),
);

const addressed = pages.flatMap(({ path, text }) =>
  [...text.matchAll(/kubectl [^`|;]*?deploy(?:ment)?\/([a-z-]+)/g)].map(([line, name = '']) => ({
    line: `${path}: ${line}`,
    name,
    namespace: / -n ([a-z-]+)/.exec(line)?.[1],
  })),
);

test('every install line makes the same Deployment', () => {
  expect(installed.length).toBeGreaterThan(1);
  expect(new Set(installed.map(({ name, namespace }) => `${namespace}/${name}`)).size).toBe(1);
});

test('every Deployment that kubectl is pointed at is the installed one, in its namespace', () => {
  expect(addressed.length).toBeGreaterThan(3);
  for (const { line, name, namespace } of addressed)
    expect({ line, name, namespace }).toEqual({ line, ...installed[0] });
});
