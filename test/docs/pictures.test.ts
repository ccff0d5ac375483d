/** The pictures of the documents: whole. Those of the dashboards are drawn anew for a release, not for each edit of a panel. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDashboards } from '../harness/observe/dashboards.ts';

const folder = join(import.meta.dirname, '../../docs/pictures');
const dashboards = readDashboards();
/** A README should not make its readers wait: compressed, as they are sent, these are a tenth of it. */
const maxBytes = 500 * 1024;

test('there is one for each dashboard, and the one of the README', () => {
  const pictures = readdirSync(folder).filter((file) => file.endsWith('.svg'));
  expect(pictures.sort()).toEqual([...dashboards.map(({ name }) => `${name}.svg`), 'overview.svg'].sort());
});

test('the one of the README can be read aloud, and needs nothing from elsewhere', () => {
  const picture = readFileSync(join(folder, 'overview.svg'), 'utf8');
  expect(picture).toMatch(/<title id="title">.+<\/title>\n {2}<desc id="about">.+<\/desc>/);
  expect(picture).not.toMatch(/href|url\((?!#)|<script/);
});

describe.each(dashboards)('the picture of $title', (dashboard) => {
  const picture = readFileSync(join(folder, `${dashboard.name}.svg`), 'utf8');

  test('names the dashboard', () => {
    expect(picture).toContain(`>${dashboard.title}</text>`);
  });

  test('says what it is, and what it is not', () => {
    expect(picture).toMatch(/in a run of \d+ seconds with injected faults on \d{4}-\d\d-\d\d/);
    expect(picture).toContain('not a Grafana screenshot');
  });

  test('shows lines, and no number that is none', () => {
    expect(picture.match(/<path [^>]*fill="none"/g)?.length).toBeGreaterThan(20);
    expect(picture).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('is small, and needs nothing from elsewhere', () => {
    expect(Buffer.byteLength(picture)).toBeLessThan(maxBytes);
    expect(picture).not.toMatch(/href|url\((?!#)|<script/);
  });
});
