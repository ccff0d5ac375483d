/** The site of the documents: it has all of them, and a link of it that leads nowhere is found. `npm run docs` builds it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useFolder } from '../harness/servers/use-started.ts';
import { deadLinks } from '../harness/site/dead-links.ts';
import { chapters, forSite, sitePages } from '../harness/site/pages.ts';
import { documents, exists } from './documents.ts';

const pages = sitePages();
const sources = pages.map(({ source }) => source);

describe('the pages', () => {
  test('are all documents; the index stands in for README.md', () => {
    expect(documents().filter((path) => !sources.includes(path))).toEqual(['README.md']);
    expect(sources.filter((path) => !exists(path))).toEqual([]);
    expect(pages.find(({ source }) => source === 'docs/README.md')?.place).toBe('index.md');
  });

  test('stand in the menu once, but for the index and single decisions', () => {
    const listed = chapters().flatMap(({ entries }) => entries.map(({ page }) => page.source));
    expect(new Set(listed).size).toBe(listed.length);
    const single = /^docs\/(README\.md|decisions\/\d+)/;
    expect(sources.filter((path) => !listed.includes(path) && !single.test(path))).toEqual([]);
  });

  test('stand in places of their own', () => {
    expect(new Set(pages.map(({ place }) => place)).size).toBe(pages.length);
  });
});

describe('a document on the site', () => {
  const install = { source: 'docs/install.md', place: 'install.md' };
  test.each([
    ['[a](settings.md#tables)', '[a](./settings.md#tables)'],
    ['[api.md](api.md)', '[API reference](./api.md)'],
    ['[a](../SECURITY.md#sealing-keys)', '[a](./project/security.md#sealing-keys)'],
    ['[a](../k8s/README.md)', '[a](./project/k8s/index.md)'],
    ['[a](decisions/README.md)', '[a](./decisions/index.md)'],
    ['[a](../README.md)', '[a](./index.md)'],
    ['![a](pictures/latency.svg)', '![a](./pictures/latency.svg)'],
    ['[a](#here) [b](https://example.com)', '[a](#here) [b](https://example.com)'],
    ['[the license](../LICENSE)', 'the license (`LICENSE`)'],
    ['[tables.yaml](../charts/model-gateway/files/tables.yaml)', '`charts/model-gateway/files/tables.yaml`'],
    ['```sh\n[a](nowhere.md)\n```', '```sh\n[a](nowhere.md)\n```'],
  ])('has %s as %s', (before, after) => {
    expect(forSite(install, before, pages)).toBe(after);
  });

  test('has no link to a file that is not there', () => {
    expect(() => forSite(install, '[a](nowhere.md)', pages)).toThrow('nowhere.md leads nowhere');
  });
});

describe('in a built site', () => {
  const site = useFolder();

  test('links without a file or an anchor are found, others are not', () => {
    mkdirSync(join(site.path, 'sub'));
    writeFileSync(join(site.path, 'index.html'), '<p id="here"></p><a href="/sub/page.html#there">');
    const links = [
      '../index.html#here',
      '/',
      '/sub/page',
      '#there',
      'https://example.com',
      '/gone',
      '/#gone',
    ];
    const page = `<h1 id="there"></h1>${links.map((link) => `<a href="${link}">`).join('')}`;
    writeFileSync(join(site.path, 'sub/page.html'), page);
    expect(deadLinks(site.path)).toEqual(['sub/page.html: /gone', 'sub/page.html: /#gone']);
  });
});
