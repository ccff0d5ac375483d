import type { Dashboard, Panel } from './dashboards.ts';
import { fillVariables, panelsOf } from './dashboards.ts';
import type { Labels, PrometheusApi } from './prometheus-api.ts';

/** What Prometheus answers to the queries of a dashboard's panels. */

export interface Answer {
  readonly name: string;
  readonly labels: Labels;
  /** Seconds since 1970 and value; a single point for a query of one moment. */
  readonly points: readonly (readonly [seconds: number, value: number])[];
}

/** By panel id; empty where Prometheus had nothing. */
export type Answers = ReadonlyMap<number, readonly Answer[]>;

export interface Window {
  /** Seconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly step: number;
  /** Stands for `$__rate_interval`, such as `10s`. */
  readonly rateInterval: string;
}

/** Asks all queries of a dashboard. Rejects when Prometheus refuses one. */
export async function askDashboard(
  api: PrometheusApi,
  dashboard: Dashboard,
  window: Window,
): Promise<Answers> {
  const answers = new Map<number, readonly Answer[]>();
  for (const panel of panelsOf(dashboard))
    answers.set(panel.id, await askPanel(api, dashboard, panel, window));
  return answers;
}

async function askPanel(
  api: PrometheusApi,
  dashboard: Dashboard,
  panel: Panel,
  { from, to, step, rateInterval }: Window,
): Promise<readonly Answer[]> {
  const answers = (panel.targets ?? []).map(async ({ expr, instant, legendFormat }) => {
    const query = fillVariables(dashboard, expr, rateInterval);
    const series =
      instant === true
        ? (await api.query(query, to)).map(({ labels, value }) => ({
            labels,
            points: [[to, value] as const],
          }))
        : await api.queryRange(query, from, to, step);
    return series.map((one) => ({ ...one, name: nameOf(one.labels, legendFormat) }));
  });
  return (await Promise.all(answers)).flat();
}

/** Grafana's legend: `{{label}}` filled in, or else all labels. */
function nameOf(labels: Labels, format: string | undefined): string {
  if (format !== undefined && format !== '')
    return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? '').trim();
  return Object.values(labels).join(' ');
}

/** The newest finite value, or NaN. */
export function lastValue({ points }: Answer): number {
  return points.findLast(([, value]) => Number.isFinite(value))?.[1] ?? Number.NaN;
}
