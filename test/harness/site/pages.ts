import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { inProject } from '../stage/project.ts';

/** A document and where it stands on the site. */
export interface Page {
  /** Relative to the checkout. */
  readonly source: string;
  /** Relative to the root of the site, with `.md`. */
  readonly place: string;
}

export interface Chapter {
  readonly title: string;
  readonly entries: readonly { readonly title: string; readonly page: Page }[];
}

const index = 'docs/README.md';

/** Where a document stands: below docs/ as it does there, the README of a folder as its index, the others below project/. */
function placeOf(source: string): string {
  const path = source.startsWith('docs/') ? source.slice('docs/'.length) : `project/${source.toLowerCase()}`;
  return path.replace(/(^|\/)readme\.md$/i, '$1index.md');
}

const pageOf = (source: string): Page => ({ source, place: placeOf(source) });

/** The chapters of docs/README.md with the documents that it lists. */
export function chapters(): Chapter[] {
  const text = readFileSync(inProject(index), 'utf8');
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      title: section.slice(0, section.indexOf('\n')),
      entries: [...section.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)].map(([, title = '', target = '']) => ({
        title,
        page: pageOf(posix.join(posix.dirname(index), target)),
      })),
    }));
}

/** Every page of the site: what docs/README.md lists, itself, and the decisions. */
export function sitePages(): Page[] {
  const listed = chapters().flatMap(({ entries }) => entries.map(({ page }) => page.source));
  const below = readdirSync(inProject('docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`);
  return [...new Set([index, ...listed, ...below])].sort().map(pageOf);
}

/** The repository's own README says less than the index of the site, which stands in for it. */
const standIns: Readonly<Record<string, string>> = { 'README.md': index };

/** A file has a name in the repository and a title on the site. */
function shownAs(words: string, source: string): string {
  if (!words.endsWith('.md')) return words;
  return /^# (.+)$/m.exec(readFileSync(inProject(source), 'utf8'))?.[1] ?? words;
}

/**
 * A document as the site has it: links lead to where their targets stand there. What is no page of the site cannot be
 * followed, so it is named by its path in the repository. Marks of what is generated are left out.
 */
export function forSite(page: Page, text: string, pages: readonly Page[]): string {
  const places = new Map(pages.map(({ source, place }) => [source, place]));
  const from = posix.dirname(page.place);
  const relative = (place: string) => {
    const path = posix.relative(from, place);
    return path.startsWith('.') ? path : `./${path}`;
  };
  const link = (whole: string, mark: string, words: string, target: string): string => {
    if (/^[a-z]+:/.test(target) || target.startsWith('#')) return whole;
    const [path = '', anchor] = target.split('#');
    const named = posix.join(posix.dirname(page.source), path);
    const source = standIns[named] ?? named;
    const place = places.get(source);
    const behind = anchor === undefined ? '' : `#${anchor}`;
    if (place !== undefined) return `${mark}[${shownAs(words, source)}](${relative(place)}${behind})`;
    if (named.startsWith('docs/pictures/'))
      return `${mark}[${words}](${relative(named.slice('docs/'.length))})`;
    if (!existsSync(inProject(named))) throw new Error(`${page.source}: ${target} leads nowhere.`);
    const shown = words.replaceAll('`', '');
    return named.endsWith(shown) ? `\`${named}\`` : `${words} (\`${named}\`)`;
  };
  return text
    .replaceAll(/^<!-- .* -->\n/gm, '')
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, position) =>
      position % 2 === 1 ? part : part.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, link),
    )
    .join('');
}
