import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readDashboards, ruleFiles } from './dashboards.ts';
import { demoTables, registerUsers } from './demo-world.ts';
import { startPage } from './page.ts';
import { startPrometheus } from './prometheus.ts';
import { startTraffic } from './traffic.ts';
import type { DemoVendors } from './vendors.ts';
import { startDemoVendors } from './vendors.ts';

/** What `npm run observe` puts around a gateway: vendors, load, mishaps, and a look at it. */

const REQUESTS_PER_SECOND = 6;
const SCRAPE_SECONDS = 2;
/** Between two mishaps, and how long each lasts. */
const QUIET_MS = 40_000;
const MISHAP_MS = 10_000;

export interface Demo {
  /** What the gateway is to be started with. */
  readonly env: Readonly<Record<string, string>>;
  /** Begins once the gateway is ready; resolves with what to tell the user. `program` is null without Prometheus. */
  begin(url: string, adminUrl: string, program: string | null): Promise<string>;
  /** Undoes all of it. */
  close(): Promise<void>;
}

/** Vendors for a gateway that is yet to be started; files go into `folder`. */
export async function prepareDemo(folder: string): Promise<Demo> {
  const vendors = await startDemoVendors();
  const closers = [() => vendors.close()];
  const tablesFile = join(folder, 'tables.yaml');
  writeFileSync(tablesFile, demoTables());
  return {
    env: { ...vendors.pack.env, GW_TABLES_FILE: tablesFile, GW_DATA_DIR: join(folder, 'data') },
    begin: async (url, adminUrl, program) => {
      const users = await registerUsers(url, vendors);
      const traffic = startTraffic({ urls: () => [url], users, requestsPerSecond: REQUESTS_PER_SECOND });
      closers.push(() => traffic.stop(), startMishaps(vendors, tablesFile));
      if (program === null) return withoutPrometheus(adminUrl);
      const labels = { cluster: 'here', namespace: 'demo', pod: 'model-gateway' };
      const prometheus = await startPrometheus({
        program,
        targets: [{ job: 'model-gateway', url: adminUrl, labels }],
        rules: ruleFiles(),
        scrapeSeconds: SCRAPE_SECONDS,
      });
      closers.push(() => prometheus.stop());
      const page = await startPage(prometheus);
      closers.push(() => page.close());
      return links(page.url, prometheus.url);
    },
    close: async () => {
      for (const close of closers.splice(0).reverse()) await close();
    },
  };
}

/** Now and then a vendor is down, and the tables are replaced. Returns how to end it. */
function startMishaps(vendors: DemoVendors, tablesFile: string): () => Promise<void> {
  const stopped = new AbortController();
  const pause = (ms: number) => delay(ms, undefined, { signal: stopped.signal });
  const running = (async () => {
    for (let round = 1; ; round += 1) {
      await pause(QUIET_MS);
      vendors.forget();
      vendors.setDown('openai', true);
      await pause(MISHAP_MS);
      vendors.setDown('openai', false);
      await pause(QUIET_MS);
      writeFileSync(tablesFile, demoTables(`timeouts: { attempt_seconds: ${60 + (round % 60)} }`));
    }
  })().catch(() => undefined);
  return async () => {
    stopped.abort();
    await running;
  };
}

function links(pageUrl: string, prometheusUrl: string): string {
  const dashboards = readDashboards();
  const width = Math.max(...dashboards.map(({ title }) => title.length)) + 2;
  const lines = dashboards.map(({ name, title }) => `  ${title.padEnd(width)}${pageUrl}/${name}`);
  const queries = dashboards.map(
    ({ name, title }) => `  ${title.padEnd(width)}${pageUrl}/${name}/prometheus`,
  );
  return `
Demo load with faults is on its way; graphs fill within a minute:

${lines.join('\n')}

The main queries in Prometheus itself (alerts: ${prometheusUrl}/alerts):

${queries.join('\n')}

In Grafana: add ${prometheusUrl} as a data source of type Prometheus, then import the files of
charts/model-gateway/dashboards (Dashboards, New, Import).
`;
}

function withoutPrometheus(adminUrl: string): string {
  return `
Demo load with faults is on its way, but there is no Prometheus to draw graphs from. Metrics: ${adminUrl}/metrics
`;
}
