import type { EChartsOption } from 'echarts';
import { init } from 'echarts';
import type { Answers, Window } from './answers.ts';
import type { Dashboard, Panel } from './dashboards.ts';
import type { Box, PanelParts } from './draw-panel.ts';
import { drawPanel } from './draw-panel.ts';

/** A dashboard as one SVG, laid out as Grafana does it: 24 columns, panels where `gridPos` says. */

/** Not much more than a README is wide, so that the smallest letters can be read there. */
const width = 1_040;
const columns = 24;
/** Of one row of the grid. */
const rowHeight = 27;
const gap = 8;
const padding = 10;
const titleHeight = 26;
const headerHeight = 44;
const captionHeight = 18;
/** What the library leaves for scripts in a browser: most of the picture's bytes. */
const forScripts = / ecmeta_\w+="[^"]*"/g;
const font = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif";

export interface DrawingOptions {
  readonly window: Window;
  /** Lines below the title. */
  readonly caption: readonly string[];
}

export function drawDashboard(dashboard: Dashboard, answers: Answers, options: DrawingOptions): string {
  const top = headerHeight + options.caption.length * captionHeight;
  const rows = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const height = top + rows * rowHeight + gap;
  const shown = dashboard.panels.filter(({ type }) => type !== 'row');
  const parts = shown.map((panel) =>
    drawPanel(panel, answers.get(panel.id) ?? [], options.window, innerBox(boxOf(panel, top))),
  );
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({
    ...merge(parts),
    animation: false,
    useUTC: true,
    backgroundColor: '#f1f3f5',
    textStyle: { fontFamily: font },
    title: [
      heading(dashboard.title, gap + 2, 14, 20),
      ...options.caption.map((line, index) =>
        heading(line, gap + 2, 40 + index * captionHeight, 12, 'normal'),
      ),
      ...dashboard.panels.map((panel) => {
        const { x, y } = boxOf(panel, top);
        return heading(panel.title, x + padding, y + 7, panel.type === 'row' ? 14 : 12);
      }),
      ...parts.flatMap(({ title }) => title),
    ],
    graphic: shown.map((panel) => ({
      type: 'rect',
      z: -1,
      silent: true,
      shape: { ...boxOf(panel, top), r: 3 },
      style: { fill: '#fff', stroke: '#dfe3e8' },
    })),
  } satisfies EChartsOption);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${svg.replace(forScripts, '')}\n`;
}

function heading(
  text: string,
  left: number,
  top: number,
  fontSize: number,
  fontWeight: 'bold' | 'normal' = 'bold',
) {
  return { text, left, top, padding: 0, textStyle: { fontSize, fontWeight, color: '#16191d' } };
}

/** All panels in one option: the axes of each belong to its own grid. */
function merge(parts: readonly PanelParts[]): EChartsOption {
  const grid = parts.filter((part) => part.grid !== undefined);
  const series = grid.flatMap((part, at) =>
    part.series.map((one) => ({ ...one, xAxisIndex: at, yAxisIndex: at, owner: part })),
  );
  return {
    grid: grid.map((part) => part.grid ?? {}),
    xAxis: grid.map((part, at) => ({ ...part.xAxis, gridIndex: at })),
    yAxis: grid.map((part, at) => ({ ...part.yAxis, gridIndex: at })),
    legend: parts.flatMap(({ legend }) => legend ?? []),
    visualMap: grid.flatMap((part) => {
      const seriesIndex = series.flatMap(({ owner }, index) => (owner === part ? index : []));
      return part.visualMap === undefined ? [] : { ...part.visualMap, seriesIndex };
    }),
    series: series.map(({ owner: _, ...one }) => one),
  } as EChartsOption;
}

function boxOf({ gridPos }: Panel, top: number): Box {
  const column = (width - gap) / columns;
  return {
    x: gap + gridPos.x * column,
    y: top + gridPos.y * rowHeight,
    width: gridPos.w * column - gap,
    height: gridPos.h * rowHeight - gap,
  };
}

/** What is left of a panel below its title. */
const innerBox = ({ x, y, width: wide, height }: Box): Box => ({
  x: x + padding,
  y: y + titleHeight,
  width: wide - 2 * padding,
  height: height - titleHeight - padding / 2,
});
