import type { Answer, Window } from './answers.ts';
import { lastValue } from './answers.ts';
import type { Panel } from './dashboards.ts';
import { colorOf } from './draw-time-series.ts';
import type { Box } from './svg.ts';
import { element, tenth, textLine } from './svg.ts';
import { writeClock, writeValue } from './units.ts';

/** Panels that are no lines: single values, bars, and the heat map of a histogram. */

const MAX_VALUES = 8;

const largestFirst = (answers: readonly Answer[]) =>
  [...answers].sort((a, b) => lastValue(b) - lastValue(a)).slice(0, MAX_VALUES);

/** One number in large type; several below each other. */
export function drawStat(panel: Panel, answers: readonly Answer[], box: Box): string {
  const shown = answers.slice(0, MAX_VALUES);
  const height = box.height / shown.length;
  return shown
    .map((answer, index) => {
      const middle = box.y + height * (index + 0.5);
      const value = writeValue(lastValue(answer), panel.fieldConfig?.defaults.unit);
      const big = textLine({ class: 'big mid', x: box.x + box.width / 2, y: middle + 8 }, value);
      const name = { class: 'legend mid', x: box.x + box.width / 2, y: middle + 26, fit: box.width };
      return shown.length === 1 && height < 80 ? big : big + textLine(name, answer.name);
    })
    .join('');
}

/** A bar per value, the largest first. */
export function drawBars(panel: Panel, answers: readonly Answer[], box: Box): string {
  const shown = largestFirst(answers);
  const most = Math.max(...shown.map(lastValue).filter(Number.isFinite), 0) || 1;
  const pitch = Math.min(34, box.height / shown.length);
  return shown
    .map((answer, index) => {
      const y = box.y + pitch * index;
      const value = lastValue(answer);
      const width = Math.max(1, (Number.isFinite(value) ? value / most : 0) * box.width);
      const bar = { class: `bar ${colorOf(index)}`, x: box.x, y: y + 15, width, height: pitch - 20, rx: 2 };
      return (
        textLine({ class: 'legend', x: box.x, y: y + 11, fit: box.width - 60 }, answer.name) +
        textLine(
          { class: 'value end', x: box.x + box.width, y: y + 11 },
          writeValue(value, panel.fieldConfig?.defaults.unit),
        ) +
        element('rect', bar)
      );
    })
    .join('');
}

const AXIS_WIDTH = 52;
const FOOT = 18;
const SHADES = 5;

/** Buckets upwards, time to the right, darker where more observations fell. Buckets of `le` are cumulative. */
export function drawHeatmap(panel: Panel, answers: readonly Answer[], window: Window, box: Box): string {
  const bounds = [...answers]
    .map((answer) => ({ answer, bound: Number(answer.labels['le']?.replace('+Inf', 'Infinity')) }))
    .sort((a, b) => a.bound - b.bound);
  const cells = bounds.flatMap(({ answer }, row) =>
    answer.points.map(([seconds, value], index) => {
      const below = bounds[row - 1]?.answer.points[index]?.[1] ?? 0;
      return { row, seconds, count: Math.max(0, value - below) };
    }),
  );
  const most = Math.max(...cells.map(({ count }) => count), 1e-9);
  const plot = {
    x: box.x + AXIS_WIDTH,
    y: box.y + 4,
    width: box.width - AXIS_WIDTH,
    height: box.height - FOOT,
  };
  const steps = Math.max(1, Math.round((window.to - window.from) / window.step) + 1);
  const [width, height] = [plot.width / steps, plot.height / Math.max(1, bounds.length)];
  const paths = new Map<number, string>();
  for (const { row, seconds, count } of cells) {
    const shade = Math.ceil((count / most) * SHADES);
    if (shade === 0) continue;
    const x = tenth(plot.x + ((seconds - window.from) / window.step) * width);
    const y = tenth(plot.y + plot.height - (row + 1) * height);
    paths.set(
      shade,
      `${paths.get(shade) ?? ''}M${x} ${y}h${tenth(width)}v${tenth(height)}h-${tenth(width)}z`,
    );
  }
  const labels = bounds.map(({ bound }, row) =>
    textLine(
      { class: 'axis end', x: plot.x - 6, y: plot.y + plot.height - row * height },
      Number.isFinite(bound) ? writeValue(bound, panel.fieldConfig?.defaults.unit) : 'more',
    ),
  );
  const times = [0.25, 0.75].map((share) => {
    const at = { class: 'axis mid', x: plot.x + share * plot.width, y: plot.y + plot.height + 13 };
    return textLine(at, writeClock(window.from + share * (window.to - window.from)));
  });
  const drawn = [...paths].map(([shade, d]) =>
    element('path', { class: 'heat', opacity: shade / SHADES, d }),
  );
  return drawn.join('') + labels.join('') + times.join('');
}
