import type { ServerResponse } from 'node:http';
import { askDashboard } from './answers.ts';
import type { Dashboard } from './dashboards.ts';
import { fillVariables, panelsOf, readDashboards } from './dashboards.ts';
import { drawDashboard } from './draw-dashboard.ts';
import type { LocalServer } from './local-server.ts';
import { serveLocally } from './local-server.ts';
import type { PrometheusProcess } from './prometheus.ts';

/** A page on loopback that shows the dashboards, drawn from Prometheus's answers every few seconds. */

const REFRESH_MS = 5_000;
const LONGEST_SECONDS = 15 * 60;
const SHORTEST_SECONDS = 60;
/** Points of a line; more than the picture's width could show would only cost. */
const MOST_POINTS = 150;
const RATE_INTERVAL = '15s';
/** Queries that the link to Prometheus's own page carries along. */
const MAIN_QUERIES = 4;

/** `/<dashboard>` is a page, `/<dashboard>.svg` its picture, `/<dashboard>/prometheus` leads to the queries themselves. */
export async function startPage(prometheus: PrometheusProcess): Promise<LocalServer> {
  const dashboards = readDashboards();
  const begin = Date.now() / 1_000;
  return serveLocally((request, response) => {
    const [name = '', view] = (request.url ?? '/').slice(1).split('?')[0]?.split(/[./]/) ?? [];
    const dashboard = dashboards.find((one) => one.name === name) ?? dashboards[0];
    if (dashboard === undefined || (name !== '' && dashboard.name !== name)) {
      send(response, 404, 'text/plain', 'no such dashboard');
    } else if (view === 'svg') {
      draw(prometheus, dashboard, begin).then(
        (svg) => send(response, 200, 'image/svg+xml', svg),
        (error: unknown) => send(response, 503, 'text/plain', String(error)),
      );
    } else if (view === 'prometheus') {
      response.writeHead(302, { location: queriesAt(prometheus.url, dashboard) }).end();
    } else send(response, 200, 'text/html; charset=utf-8', html(dashboards, dashboard));
  });
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
}

async function draw(prometheus: PrometheusProcess, dashboard: Dashboard, begin: number): Promise<string> {
  const to = Date.now() / 1_000;
  const from = Math.min(Math.max(begin, to - LONGEST_SECONDS), to - SHORTEST_SECONDS);
  const step = Math.max(2, Math.ceil((to - from) / MOST_POINTS));
  const window = { from, to, step, rateInterval: RATE_INTERVAL };
  const answers = await askDashboard(prometheus, dashboard, window);
  const caption = ["Demo load with injected faults, live from Prometheus's answers. Times are UTC."];
  return drawDashboard(dashboard, answers, { window, caption });
}

/** Prometheus's own page with the first queries over time of a dashboard. */
function queriesAt(url: string, dashboard: Dashboard): string {
  const queries = panelsOf(dashboard)
    .filter(({ type }) => type === 'timeseries')
    .slice(0, MAIN_QUERIES)
    .map(({ targets = [] }) => fillVariables(dashboard, targets[0]?.expr ?? '', RATE_INTERVAL));
  const parameters = queries.flatMap((query, index): [string, string][] => [
    [`g${index}.expr`, query],
    [`g${index}.tab`, '0'],
    [`g${index}.range_input`, '15m'],
  ]);
  return `${url}/graph?${new URLSearchParams(parameters)}`;
}

function html(dashboards: readonly Dashboard[], shown: Dashboard): string {
  const links = dashboards.map(({ name, title }) =>
    name === shown.name ? `<b>${title}</b>` : `<a href="/${name}">${title}</a>`,
  );
  return `<!doctype html>
<meta charset="utf-8">
<title>${shown.title}</title>
<style>
:root { color-scheme: light dark }
body { margin: 0 auto; max-width: 1400px; font: 14px system-ui, sans-serif }
nav { display: flex; gap: 20px; padding: 10px }
nav :last-child { margin-left: auto }
img { width: 100% }
</style>
<nav>${links.join('')}<a href="/${shown.name}/prometheus">its queries in Prometheus</a></nav>
<img id="picture" src="/${shown.name}.svg" alt="${shown.title}">
<script>
setInterval(() => {
  const next = new Image();
  next.onload = () => { picture.src = next.src };
  next.src = '/${shown.name}.svg?' + Date.now();
}, ${REFRESH_MS});
</script>
`;
}
