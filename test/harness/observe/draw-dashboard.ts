import type { Answer, Answers, Window } from './answers.ts';
import type { Dashboard, Panel } from './dashboards.ts';
import { fingerprint } from './dashboards.ts';
import { drawBars, drawHeatmap, drawStat } from './draw-moment.ts';
import { drawTimeSeries } from './draw-time-series.ts';
import { styleSheet } from './style-sheet.ts';
import type { Box } from './svg.ts';
import { element, escapeXml, textLine } from './svg.ts';

/** A dashboard as one SVG, laid out as Grafana does it: 24 columns, panels where `gridPos` says. */

/** Not much more than a README is wide, so that the smallest letters can be read there. */
const WIDTH = 1_040;
const COLUMNS = 24;
/** Of one row of the grid. */
const ROW_HEIGHT = 27;
const GAP = 8;
const PADDING = 10;
const TITLE_HEIGHT = 26;
const HEADER_HEIGHT = 44;
const CAPTION_HEIGHT = 18;

export interface DrawingOptions {
  readonly window: Window;
  /** Lines below the title. */
  readonly caption: readonly string[];
}

/** The picture; it carries the dashboard's fingerprint in its metadata. */
export function drawDashboard(dashboard: Dashboard, answers: Answers, options: DrawingOptions): string {
  const rows = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const top = HEADER_HEIGHT + options.caption.length * CAPTION_HEIGHT;
  const height = rows * ROW_HEIGHT + GAP;
  const panels = dashboard.panels.map((panel) =>
    panel.type === 'row' ? drawHeading(panel) : drawPanel(panel, answers.get(panel.id) ?? [], options.window),
  );
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    width: WIDTH,
    height: top + height,
    viewBox: `0 0 ${WIDTH} ${top + height}`,
    role: 'img',
  };
  const content = [
    element('title', {}, escapeXml(dashboard.title)),
    element('desc', {}, escapeXml(options.caption.join(' '))),
    element('metadata', {}, fingerprint(dashboard)),
    element('style', {}, styleSheet),
    element('rect', { class: 'page', width: WIDTH, height: top + height }),
    textLine({ class: 'heading', x: GAP + 2, y: 30 }, dashboard.title),
    ...options.caption.map((line, index) =>
      textLine({ class: 'caption', x: GAP + 2, y: 50 + index * CAPTION_HEIGHT }, line),
    ),
    element('g', { transform: `translate(0 ${top})` }, panels.join('\n')),
  ];
  return `${element('svg', attributes, content.join('\n'))}\n`;
}

function boxOf({ gridPos }: Panel): Box {
  const column = (WIDTH - GAP) / COLUMNS;
  return {
    x: GAP + gridPos.x * column,
    y: gridPos.y * ROW_HEIGHT,
    width: gridPos.w * column - GAP,
    height: gridPos.h * ROW_HEIGHT - GAP,
  };
}

function drawHeading(panel: Panel): string {
  const { x, y } = boxOf(panel);
  return textLine({ class: 'row', x: x + 2, y: y + 14 }, panel.title);
}

function drawPanel(panel: Panel, answers: readonly Answer[], window: Window): string {
  const box = boxOf(panel);
  const inner = {
    x: box.x + PADDING,
    y: box.y + TITLE_HEIGHT,
    width: box.width - 2 * PADDING,
    height: box.height - TITLE_HEIGHT - PADDING / 2,
  };
  return element(
    'g',
    {},
    element('rect', { class: 'panel', ...box, rx: 3 }) +
      textLine({ class: 'title', x: inner.x, y: box.y + 18 }, panel.title) +
      drawContent(panel, answers, window, inner),
  );
}

function drawContent(panel: Panel, answers: readonly Answer[], window: Window, box: Box): string {
  const isEmpty = !answers.some(({ points }) => points.some(([, value]) => Number.isFinite(value)));
  const middle = { class: 'legend mid', x: box.x + box.width / 2, y: box.y + box.height / 2 + 4 };
  if (isEmpty) return textLine(middle, 'no data in this window');
  if (panel.type === 'timeseries') return drawTimeSeries(panel, answers, window, box);
  if (panel.type === 'heatmap') return drawHeatmap(panel, answers, window, box);
  if (panel.type === 'bargauge') return drawBars(panel, answers, box);
  return drawStat(panel, answers, box);
}
