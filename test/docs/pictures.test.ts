/** The README's pictures of the dashboards: whole, and drawn from the queries that the dashboards ask today. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fingerprint, readDashboards } from '../harness/observe/dashboards.ts';
import { escapeXml } from '../harness/observe/svg.ts';

const folder = join(import.meta.dirname, '../../docs/pictures');
const dashboards = readDashboards();
const howTo = 'the dashboard has changed since: run "npm run pictures"';
/** A README should not make its readers wait. */
const maxBytes = 150 * 1024;

test('there is one for each dashboard', () => {
  const pictures = readdirSync(folder).filter((file) => file.endsWith('.svg'));
  expect(pictures.sort()).toEqual(dashboards.map(({ name }) => `${name}.svg`).sort());
});

describe.each(dashboards)('the picture of $title', (dashboard) => {
  const picture = readFileSync(join(folder, `${dashboard.name}.svg`), 'utf8');

  test('was drawn from the queries and the layout of today', () => {
    expect(/<metadata>(.*?)<\/metadata>/.exec(picture)?.[1], howTo).toBe(fingerprint(dashboard));
  });

  test('names the dashboard and each of its panels', () => {
    for (const title of [dashboard.title, ...dashboard.panels.map((panel) => panel.title)])
      expect(picture).toContain(`>${escapeXml(title)}</text>`);
  });

  test('says what it is, and what it is not', () => {
    expect(picture).toMatch(/in a run of \d+ seconds with injected faults on \d{4}-\d\d-\d\d/);
    expect(picture).toContain('not a Grafana screenshot');
  });

  test('shows lines, and no number that is none', () => {
    expect(picture.match(/class="line /g)?.length).toBeGreaterThan(20);
    expect(picture).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('is small, and needs nothing from elsewhere', () => {
    expect(Buffer.byteLength(picture)).toBeLessThan(maxBytes);
    expect(picture).not.toMatch(/href|url\(|<script/);
  });
});
