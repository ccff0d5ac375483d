import type { Answer, Window } from './answers.ts';
import { lastValue } from './answers.ts';
import type { Panel } from './dashboards.ts';
import type { Box } from './svg.ts';
import { CHARACTER_WIDTH, element, tenth, textLine } from './svg.ts';
import { axisTicks, writeClock, writeValue } from './units.ts';

/** Lines or stacked areas over time, with axes and a legend. */

/** More lines than this cannot be told apart; the rest are added up (stacked) or named by their number. */
const MAX_SERIES = 8;
/** More names than this go into two columns, shortened if need be. */
const MAX_SINGLE_COLUMN = 4;
/** Room for a value, and for what stands before a name. */
const VALUE_WIDTH = 56;
const SWATCH_WIDTH = 16;
const AXIS_WIDTH = 52;
const LINE_HEIGHT = 14;
const Y_TICKS = 4;
const X_TICKS = 4;
/** How far the axis of a flat zero line reaches. */
const EMPTY_TOP = 1;

/** Class names of the palette in the style sheet. */
export const colorOf = (index: number) => `c${index % MAX_SERIES}`;

interface Scale {
  readonly x: (seconds: number) => number;
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
  readonly plot: Box;
}

/** The inner part of a panel, below its title. */
export function drawTimeSeries(panel: Panel, answers: readonly Answer[], window: Window, box: Box): string {
  const { unit, custom } = panel.fieldConfig?.defaults ?? {};
  const isStacked = custom?.stacking?.mode === 'normal';
  const { shown, omitted } = choose(answers, isStacked);
  const legend = drawLegend(shown, omitted, unit, box);
  const plot = { ...box, x: box.x + AXIS_WIDTH, width: box.width - AXIS_WIDTH };
  const inner = { ...plot, y: plot.y + 4, height: plot.height - legend.height - LINE_HEIGHT - 6 };
  const layers = isStacked ? stack(shown) : shown.map((answer) => ({ answer, base: null }));
  const scale = scaleFor(
    layers.map(({ answer }) => answer),
    window,
    inner,
    panel.fieldConfig?.defaults ?? {},
  );
  const drawn = layers.map(({ answer, base }, index) =>
    base === null ? drawLine(answer, scale, index) : drawArea(answer, base, scale, index),
  );
  return drawAxes(scale, window, unit) + drawn.reverse().join('') + legend.svg;
}

const peak = ({ points }: Answer) =>
  points.reduce((most, [, value]) => (Number.isFinite(value) ? Math.max(most, value) : most), 0);

/** The largest ones; of a stack, the others as one. */
function choose(answers: readonly Answer[], isStacked: boolean) {
  const lively = answers.filter(({ points }) => points.some(([, value]) => Number.isFinite(value)));
  if (lively.length <= MAX_SERIES) return { shown: lively, omitted: 0 };
  const sorted = [...lively].sort((a, b) => peak(b) - peak(a));
  const room = isStacked ? MAX_SERIES - 1 : MAX_SERIES;
  const rest = sorted.slice(room);
  const shown = sorted.slice(0, room);
  if (!isStacked) return { shown, omitted: rest.length };
  const total = new Map<number, number>();
  for (const { points } of rest)
    for (const [seconds, value] of points) total.set(seconds, (total.get(seconds) ?? 0) + finite(value));
  const points = [...total].sort(([a], [b]) => a - b);
  return { shown: [...shown, { name: `${rest.length} others`, labels: {}, points }], omitted: 0 };
}

const finite = (value: number) => (Number.isFinite(value) ? value : 0);

/** Each answer raised by those before it, with the line it stands on. */
function stack(answers: readonly Answer[]) {
  const height = new Map<number, number>();
  return answers.map((answer) => {
    const base = answer.points.map(([seconds]) => [seconds, height.get(seconds) ?? 0] as const);
    const points = answer.points.map(([seconds, value], index) => {
      const top = (base[index]?.[1] ?? 0) + finite(value);
      height.set(seconds, top);
      return [seconds, top] as const;
    });
    return { answer: { ...answer, points }, base };
  });
}

type Defaults = NonNullable<Panel['fieldConfig']>['defaults'];

function scaleFor(answers: readonly Answer[], window: Window, plot: Box, { unit, max }: Defaults): Scale {
  const values = answers.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
  const most = Math.max(0, ...values);
  const least = Math.min(0, ...values);
  const top = max !== undefined && most > max / 2 ? Math.max(max, most) : most === 0 ? EMPTY_TOP : most;
  const size = unit === 'bytes' && top >= 1 ? 1024 ** Math.floor(Math.log(top) / Math.log(1024)) : 1;
  const ticks = axisTicks(least / size, top / size, Y_TICKS).map((tick) => tick * size);
  const [bottom = 0, end = 1] = [ticks[0], ticks.at(-1)];
  return {
    x: (seconds) => plot.x + ((seconds - window.from) / (window.to - window.from)) * plot.width,
    y: (value) => plot.y + plot.height - ((value - bottom) / (end - bottom)) * plot.height,
    ticks,
    plot,
  };
}

function drawAxes({ x, y, ticks, plot }: Scale, window: Window, unit: string | undefined): string {
  const lines = ticks.map((tick) => `M${tenth(plot.x)} ${tenth(y(tick))}h${tenth(plot.width)}`).join('');
  const labels = ticks.map((tick) =>
    textLine({ class: 'axis end', x: plot.x - 6, y: y(tick) + 3.5 }, writeValue(tick, unit)),
  );
  const times = Array.from({ length: X_TICKS }, (_, index) => {
    const seconds = window.from + ((index + 0.5) / X_TICKS) * (window.to - window.from);
    return textLine({ class: 'axis mid', x: x(seconds), y: plot.y + plot.height + 13 }, writeClock(seconds));
  });
  return element('path', { class: 'grid', d: lines }) + labels.join('') + times.join('');
}

/** Gaps stay gaps. */
function drawLine({ points }: Answer, scale: Scale, index: number): string {
  const parts: string[] = [];
  let open: (readonly [number, number])[] = [];
  for (const point of [...points, [Number.NaN, Number.NaN] as const]) {
    if (Number.isFinite(point[1])) open.push(point);
    else if (open.length > 0) parts.push(pathAlong(open, scale));
    if (!Number.isFinite(point[1])) open = [];
  }
  return element('path', { class: `line ${colorOf(index)}`, d: parts.join('') });
}

function drawArea(answer: Answer, base: Answer['points'], scale: Scale, index: number): string {
  const path = `${pathAlong([...answer.points, ...[...base].reverse()], scale)}z`;
  return element('path', { class: `area ${colorOf(index)}`, d: path }) + drawLine(answer, scale, index);
}

/** In steps relative to each other, and without the points in the middle of a level, which keeps pictures small. */
function pathAlong(points: Answer['points'], scale: Scale): string {
  const places = points.map(([seconds, value]) => [tenth(scale.x(seconds)), tenth(scale.y(value))] as const);
  const bends = places.filter(([, y], index) => y !== places[index - 1]?.[1] || y !== places[index + 1]?.[1]);
  const steps = bends.map(([x, y], index) => {
    const before = bends[index - 1];
    if (before === undefined) return `M${x} ${y}`;
    const [across, down] = [tenth(x - before[0]), tenth(y - before[1])];
    return down === 0 ? `h${across}` : `l${across} ${down}`;
  });
  return steps.join('');
}

/** Names at the foot of the box, with their newest values where there is room for both. */
function drawLegend(shown: readonly Answer[], omitted: number, unit: string | undefined, box: Box) {
  const longest = Math.max(0, ...shown.map(({ name }) => name.length)) * CHARACTER_WIDTH + SWATCH_WIDTH;
  const isRoomy = longest + VALUE_WIDTH < box.width / 2;
  const columns = shown.length > 1 && (isRoomy || shown.length > MAX_SINGLE_COLUMN) ? 2 : 1;
  const rows = Math.ceil((shown.length + (omitted > 0 ? 1 : 0)) / columns);
  const height = rows * LINE_HEIGHT;
  const width = box.width / columns;
  const hasValues = longest + VALUE_WIDTH < width;
  const fit = width - SWATCH_WIDTH - (hasValues ? VALUE_WIDTH : 0);
  const entries = shown.map((answer, index) => {
    const x = box.x + (index % columns) * width;
    const y = box.y + box.height - height + Math.floor(index / columns) * LINE_HEIGHT + 11;
    const swatch = element('path', {
      class: `swatch ${colorOf(index)}`,
      d: `M${tenth(x)} ${tenth(y - 4)}h10`,
    });
    const name = textLine({ class: 'legend', x: x + 14, y, fit }, answer.name);
    if (!hasValues) return swatch + name;
    const value = writeValue(lastValue(answer), unit);
    return swatch + name + textLine({ class: 'value end', x: x + width - 8, y }, value);
  });
  const place = { class: 'legend', x: box.x + 14, y: box.y + box.height - 3 };
  const more = omitted === 0 ? '' : textLine(place, `and ${omitted} smaller ones`);
  return { svg: entries.join('') + more, height };
}
