import { join } from 'node:path';
import { nodePackages } from '../clients/node-packages.ts';
import { startChromium } from '../site/chromium.ts';
import { lookAtPages, pathsOf } from '../site/look-at-pages.ts';
import { makeSite } from '../site/make-site.ts';
import { serveSite } from '../site/serve-site.ts';
import { isStopped } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';
import type { Tally } from '../stage/run-stage.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';

/** For `--serve`. */
const port = 5173;

/**
 * `npm run docs`: the documents as a site with a search, in site/, each page of which is opened in Chromium, wide and
 * narrow. A link that leads nowhere fails it, and so does a page that cannot be read or walked. `npm run docs -- --serve`
 * shows the site afterwards, until Ctrl-C.
 */
await runStage(async () => {
  const site = inProject('site');
  const packages = await nodePackages('test/harness/site', 'the generator of the site');
  return withRunFolder(async (folder) => {
    const passed = await makeSite(packages, join(folder, 'pages'), site);
    console.log('The site is in site/.');
    if (!process.argv.includes('--serve')) {
      const seen = await openPages(site, join(folder, 'profile'));
      return { ...seen, passed: passed + seen.passed };
    }
    if (!isStopped()) await show(site);
    return { passed, failed: 0, skipped: 0 };
  });
});

/**
 * Where no Chromium can be had this is a skip even where all tools are required: it is no tool of the product, a third of a
 * gigabyte, and of Debian only.
 */
async function openPages(site: string, profile: string): Promise<Tally> {
  const chromium = await startChromium(profile).catch((error: unknown) => {
    if (!(error instanceof StageError)) throw error;
    console.log(`skipped: the pages in a browser, ${error.message}`);
    return null;
  });
  if (chromium === null) return { passed: 0, failed: 0, skipped: 1 };
  const server = await serveSite(site, 0);
  try {
    const paths = pathsOf(site);
    const problems = await lookAtPages(chromium.tab, server.url, paths);
    for (const problem of problems) console.error(problem);
    if (problems.length === 0) console.log(`${paths.length} pages were opened in Chromium, wide and narrow.`);
    return { passed: problems.length === 0 ? 1 : 0, failed: problems.length, skipped: 0 };
  } finally {
    await chromium.close();
    await server.close();
  }
}

/** Resolves when it is stopped. */
async function show(site: string): Promise<void> {
  const server = await serveSite(site, port);
  console.log(`${server.url}, until Ctrl-C.`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await server.close();
}
