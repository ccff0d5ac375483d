import type { EChartsOption } from 'echarts';
import type { Answer, Window } from './answers.ts';
import { lastValue } from './answers.ts';
import type { Panel } from './dashboards.ts';
import { writeClock, writeValue } from './units.ts';

/** What one panel of Grafana is in the words of ECharts. Drawing, axes and scales are the library's. */

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

type Part<Name extends keyof EChartsOption> = Exclude<NonNullable<EChartsOption[Name]>, readonly unknown[]>;

/** The parts of one panel; their axes are numbered from 0, and moved up when all panels are put together. */
export interface PanelParts {
  readonly title: Part<'title'>[];
  readonly grid?: Part<'grid'>;
  readonly xAxis?: Part<'xAxis'>;
  readonly yAxis?: Part<'yAxis'>;
  readonly legend?: Part<'legend'>;
  readonly visualMap?: Part<'visualMap'>;
  readonly series: Part<'series'>[];
}

/** Eight colours that can be told apart, also by the colour-blind (after Okabe and Ito). */
const palette = ['#2f7ed8', '#e07b00', '#2a9d5c', '#d1495b', '#8e6bbf', '#00a3b4', '#b8860b', '#7f8c9b'];
const axisColor = '#6b7580';
const gridColor = '#e6e9ed';
/** More lines than these cannot be told apart; the rest are added up (stacked) or named by their number. */
const maxNames = 8;
const rowHeight = 14;
const axisWidth = 52;
const axisHeight = 18;
/** Of the small font, on average, in pixels. */
const characterWidth = 6.4;
/** A name and its value; of a narrow panel two columns share the width. */
const leastColumn = 190;
/** Before a name in a legend, and behind it. */
const swatchWidth = 28;

const unitOf = (panel: Panel): string | undefined => panel.fieldConfig?.defaults.unit;
const largestFirst = (answers: readonly Answer[]): readonly Answer[] =>
  answers.toSorted((a, b) => (lastValue(b) || 0) - (lastValue(a) || 0));

/** A line of text in the middle of the box. */
function words(text: string, box: Box, fontSize: number, y = box.y + box.height / 2): Part<'title'> {
  const textStyle = { fontSize, fontWeight: fontSize > 12 ? 'bold' : 'normal', color: axisColor } as const;
  return {
    text,
    left: box.x + box.width / 2,
    top: y - fontSize / 2,
    textAlign: 'center',
    padding: 0,
    textStyle,
  };
}

/** The inner part of a panel, below its title. */
export function drawPanel(panel: Panel, answers: readonly Answer[], window: Window, box: Box): PanelParts {
  const lively = answers.filter(({ points }) => points.some(([, value]) => Number.isFinite(value)));
  if (lively.length === 0) return { title: [words('no data in this window', box, 11)], series: [] };
  if (panel.type === 'timeseries') return timeSeries(panel, lively, window, box);
  if (panel.type === 'heatmap') return heatmap(panel, lively, box);
  if (panel.type === 'bargauge') return bars(panel, lively, box);
  return stat(panel, lively, box);
}

function timeSeries(panel: Panel, answers: readonly Answer[], { from, to }: Window, box: Box): PanelParts {
  const { custom, max } = panel.fieldConfig?.defaults ?? {};
  const isStacked = custom?.stacking?.mode === 'normal';
  const named = isStacked ? withOthers(answers) : largestFirst(answers).slice(0, maxNames);
  const omitted = isStacked ? 0 : answers.length - named.length;
  const columns = Math.min(named.length, Math.max(2, Math.floor(box.width / leastColumn)));
  const legendHeight = Math.ceil(named.length / columns) * rowHeight;
  // Names are unique in the whole picture, in which every panel has its own legend.
  const idOf = (answer: Answer): string => `${panel.id}:${named.indexOf(answer)}`;
  const nameWidth = box.width / columns - swatchWidth;
  return {
    title: omitted === 0 ? [] : [words(`and ${omitted} smaller ones`, box, 10, box.y + 8)],
    grid: gridIn(box, legendHeight),
    xAxis: {
      type: 'time',
      min: from * 1_000,
      max: to * 1_000,
      splitNumber: 3,
      axisLabel: { formatter: (ms: number) => writeClock(ms / 1_000), ...label, hideOverlap: true },
      axisLine: { lineStyle: { color: gridColor } },
    },
    yAxis: {
      ...valueAxis(unitOf(panel)),
      ...(max !== undefined && named.some((answer) => lastValue(answer) > max / 2) ? { max } : {}),
    },
    legend: {
      data: named.map(idOf),
      left: box.x,
      top: box.y + box.height - legendHeight,
      width: box.width,
      padding: 0,
      itemGap: 2,
      itemWidth: 10,
      itemHeight: 3,
      icon: 'rect',
      selectedMode: false,
      textStyle: { ...label, width: nameWidth },
      formatter: (id: string) => {
        const answer = named[Number(id.split(':')[1])] as Answer;
        return shorten(
          `${answer.name}  ${writeValue(lastValue(answer), unitOf(panel))}`,
          Math.floor(nameWidth / characterWidth),
        );
      },
    },
    series: named.map((answer, index) => ({
      type: 'line',
      name: idOf(answer),
      data: answer.points.map(([seconds, value]) => [seconds * 1_000, Number.isFinite(value) ? value : null]),
      ...plain,
      color: colorOf(index),
      lineStyle: { width: 1.5 },
      ...(isStacked ? { stack: String(panel.id), areaStyle: { opacity: 0.3 } } : {}),
    })),
  };
}

/** The largest ones, and the others as one. */
function withOthers(answers: readonly Answer[]): readonly Answer[] {
  if (answers.length <= maxNames) return largestFirst(answers);
  const sorted = largestFirst(answers);
  const rest = sorted.slice(maxNames - 1);
  const points = (rest[0] as Answer).points.map(([seconds], at) => {
    const sum = rest.reduce((total, answer) => total + (answer.points[at]?.[1] || 0), 0);
    return [seconds, sum] as const;
  });
  return [...sorted.slice(0, maxNames - 1), { name: `${rest.length} others`, labels: {}, points }];
}

/** One number in large type; several below each other. */
function stat(panel: Panel, answers: readonly Answer[], box: Box): PanelParts {
  const shown = answers.slice(0, maxNames);
  const height = box.height / shown.length;
  const title = shown.flatMap((answer, index) => {
    const middle = box.y + height * (index + 0.5);
    const size = Math.min(26, height / 2);
    const value = words(writeValue(lastValue(answer), unitOf(panel)), box, size, middle - size / 3);
    return shown.length === 1 ? [value] : [value, words(answer.name, box, size / 2.4, middle + size / 2)];
  });
  return { title, series: [] };
}

/** A bar per value, the largest on top. */
function bars(panel: Panel, answers: readonly Answer[], box: Box): PanelParts {
  const shown = largestFirst(answers).slice(0, maxNames).toReversed();
  const unit = unitOf(panel);
  return {
    title: [],
    grid: { left: box.x, top: box.y, width: box.width - 60, height: box.height },
    xAxis: { type: 'value', show: false },
    yAxis: { type: 'category', show: false, data: shown.map(({ name }) => name) },
    series: [
      {
        type: 'bar',
        ...plain,
        barWidth: '45%',
        data: shown.map((answer, index) => ({
          value: lastValue(answer),
          itemStyle: { color: colorOf(shown.length - 1 - index) },
        })),
        label: {
          show: true,
          position: 'insideLeft',
          offset: [0, -rowHeight],
          ...label,
          formatter: ({ dataIndex }) => {
            const { name } = shown[dataIndex] as Answer;
            return `${name}  ${writeValue(lastValue(shown[dataIndex] as Answer), unit)}`;
          },
        },
      },
    ],
  };
}

/** Buckets upwards, time to the right, darker where more observations fell. Buckets of `le` are cumulative. */
function heatmap(panel: Panel, answers: readonly Answer[], box: Box): PanelParts {
  const buckets = answers
    .map((answer) => ({ answer, bound: Number(answer.labels['le']?.replace('+Inf', 'Infinity')) }))
    .toSorted((a, b) => a.bound - b.bound);
  const times = buckets[0]?.answer.points.map(([seconds]) => writeClock(seconds)) ?? [];
  const cells = buckets.flatMap(({ answer }, row) =>
    answer.points.map(([, value], index) => {
      const below = buckets[row - 1]?.answer.points[index]?.[1] ?? 0;
      return [index, row, Math.max(0, value - below)] as const;
    }),
  );
  const names = buckets.map(({ bound }) =>
    Number.isFinite(bound) ? writeValue(bound, unitOf(panel)) : 'more',
  );
  return {
    title: [],
    grid: gridIn(box, 0),
    xAxis: { type: 'category', data: times, axisLabel: { ...label, interval: Math.ceil(times.length / 3) } },
    yAxis: { type: 'category', data: names, axisLabel: { ...label, interval: 'auto' } },
    visualMap: {
      show: false,
      min: 0,
      max: Math.max(...cells.map(([, , count]) => count), 1e-9),
      inRange: { color: ['#ffffff', '#d1495b'] },
    },
    series: [
      { type: 'heatmap', ...plain, data: cells.filter(([, , count]) => count > 0).map((cell) => [...cell]) },
    ],
  };
}

/** Nothing to point at, nothing that moves: the picture is printed. */
const plain = { silent: true, animation: false, showSymbol: false, emphasis: { disabled: true } } as const;
const label = { fontSize: 10, color: axisColor } as const;

const colorOf = (index: number): string => palette[index % palette.length] as string;

const gridIn = (box: Box, legendHeight: number): Part<'grid'> => ({
  left: box.x + axisWidth,
  top: box.y + 4,
  width: box.width - axisWidth,
  height: box.height - legendHeight - axisHeight - 6,
});

const valueAxis = (unit: string | undefined) =>
  ({
    type: 'value',
    splitNumber: 4,
    axisLabel: { ...label, formatter: (value: number) => writeValue(value, unit) },
    splitLine: { lineStyle: { color: gridColor } },
  }) as const;

/** Without its middle where it is longer, since names differ at their ends. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
