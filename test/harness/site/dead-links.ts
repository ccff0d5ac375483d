import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Links and sources of a page that lead to the site itself. */
const ownAddress = /\s(?:href|src)="(?![a-z]+:|\/\/)([^"]*)"/g;

/** Every link of a built site that leads to no file of it, or to no anchor of that file, as `page: link`. */
export function deadLinks(site: string): string[] {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.html'),
  );
  const texts = new Map(pages.map((path) => [join(site, path), readFileSync(join(site, path), 'utf8')]));
  return [...texts].flatMap(([page, text]) =>
    [...text.matchAll(ownAddress)]
      .map(([, link = '']) => link.replaceAll('&amp;', '&'))
      .filter((link) => leadsNowhere(site, page, link, texts))
      .map((link) => `${page.slice(site.length + 1)}: ${link}`),
  );
}

function leadsNowhere(site: string, page: string, link: string, texts: ReadonlyMap<string, string>): boolean {
  const [path = '', anchor = ''] = decodeURI(link).split('#');
  const named = path.startsWith('/') ? join(site, path) : join(dirname(page), path);
  const file = path === '' ? page : fileOf(named);
  if (file === null) return true;
  return anchor !== '' && texts.get(file)?.includes(`id="${anchor}"`) === false;
}

/** As a plain web server finds it; null where there is none. */
function fileOf(path: string): string | null {
  if (!existsSync(path)) return existsSync(`${path}.html`) ? `${path}.html` : null;
  if (!statSync(path).isDirectory()) return path;
  return existsSync(join(path, 'index.html')) ? join(path, 'index.html') : null;
}
