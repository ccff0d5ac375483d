import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';
import { deadLinks } from './dead-links.ts';
import { forSite, sitePages } from './pages.ts';

/**
 * Builds the site of the documents into `site` with the generator of `packages`, and resolves with the number of its pages;
 * works in `folder`. Throws StageError where it cannot be built or a link of it leads nowhere.
 */
export async function makeSite(packages: string, folder: string, site: string): Promise<number> {
  const pages = sitePages();
  for (const page of pages) {
    const path = join(folder, page.place);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, forSite(page, readFileSync(inProject(page.source), 'utf8'), pages));
  }
  cpSync(inProject('docs', 'pictures'), join(folder, 'pictures'), { recursive: true });
  // Those that are linked to, not shown, are files of the site as well.
  cpSync(inProject('docs', 'pictures'), join(folder, 'public', 'pictures'), { recursive: true });
  const modules = join(packages, 'node_modules');
  symlinkSync(modules, join(folder, 'node_modules'));
  const config = JSON.stringify(inProject('test', 'harness', 'site', 'vitepress-config.ts'));
  const style = JSON.stringify(inProject('test', 'harness', 'site', 'style.css'));
  mkdirSync(join(folder, '.vitepress', 'theme'), { recursive: true });
  const told = (file: string, lines: readonly string[]) =>
    writeFileSync(join(folder, '.vitepress', file), `${lines.join('\n')}\n`);
  told('config.mts', [`import { siteConfig } from ${config};`, 'export default siteConfig;']);
  told('theme/index.mts', [
    "import theme from 'vitepress/theme';",
    `import ${style};`,
    'export default theme;',
  ]);
  rmSync(site, { recursive: true, force: true });
  const program = join(modules, 'vitepress', 'bin', 'vitepress.js');
  const { code } = await run(process.execPath, [program, 'build', folder, '--outDir', site], { cwd: folder });
  if (code !== 0) throw new StageError('The site could not be built.');
  const dead = deadLinks(site);
  if (dead.length > 0) throw new StageError(`Links of the site that lead nowhere:\n${dead.join('\n')}`);
  return pages.length;
}
