import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The chart's dashboards as data: what a panel asks, and how its answer is to be shown. */

const chart = join(import.meta.dirname, '../../../charts/model-gateway');
const dashboardsFolder = join(chart, 'dashboards');

export interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat?: string;
  readonly exemplar?: boolean;
  /** Ask for one moment instead of a range. */
  readonly instant?: boolean;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string;
      readonly min?: number;
      readonly max?: number;
      readonly decimals?: number;
      readonly custom?: { readonly stacking?: { readonly mode?: string } };
    };
  };
}

export interface Dashboard {
  /** File name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly allValue?: string }[] };
}

/** All dashboards of the chart. */
export function readDashboards(): readonly Dashboard[] {
  return readdirSync(dashboardsFolder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({
      ...(JSON.parse(readFileSync(join(dashboardsFolder, file), 'utf8')) as Omit<Dashboard, 'name'>),
      name: file.slice(0, -'.json'.length),
    }));
}

/** Recording rules and alerts. */
export function ruleFiles(): readonly string[] {
  const folder = join(chart, 'rules');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => join(folder, file));
}

/** The panels that show something; rows are headings. */
export function panelsOf(dashboard: Dashboard): readonly Panel[] {
  return dashboard.panels.filter((panel) => panel.type !== 'row');
}

/** The expression as Grafana sends it: "All" for each variable, and the window for `$__rate_interval` (`20s`, say). */
export function fillVariables(dashboard: Dashboard, expr: string, rateInterval: string): string {
  const all = new Map(dashboard.templating.list.map(({ name, allValue }) => [name, allValue ?? '.*']));
  return expr
    .replaceAll('$__rate_interval', rateInterval)
    .replace(/\$\{?(\w+)\}?/g, (whole, name: string) => all.get(name) ?? whole);
}
