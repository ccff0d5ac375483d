import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../src/dev/free-port.ts';
import type { PrometheusApi } from './prometheus-api.ts';
import { prometheusApi } from './prometheus-api.ts';

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 10_000;
const POLL_MS = 50;
/** Of the newest exemplars; a run of minutes makes far fewer. */
const MAX_EXEMPLARS = 100_000;

/** A scraped address with the labels that a cluster's service discovery would attach. */
export interface ScrapeTarget {
  readonly job: string;
  /** Origin; `/metrics` is asked. */
  readonly url: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface PrometheusOptions {
  readonly program: string;
  readonly targets: readonly ScrapeTarget[];
  /** Absolute paths. */
  readonly rules: readonly string[];
  readonly scrapeSeconds: number;
}

export interface PrometheusProcess extends PrometheusApi {
  readonly url: string;
  /** Resolves when the process has ended and its data is gone. */
  stop(): Promise<void>;
}

/** A Prometheus of its own on a free loopback port, its data in a temporary folder. Rejects with its last words. */
export async function startPrometheus(options: PrometheusOptions): Promise<PrometheusProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'model-gateway-prometheus-'));
  const config = join(folder, 'prometheus.yaml');
  await writeFile(config, JSON.stringify(configuration(options)));
  const port = await freePort();
  const child = spawn(options.program, programArguments(options.program, config, folder, port), {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // Whoever sweeps the folder after a crash of ours finds the process by this file.
  await writeFile(join(folder, 'prometheus.pid'), `${child.pid ?? 0}\n`);
  let words = '';
  child.stderr.on('data', (bytes: Buffer) => {
    words = (words + bytes.toString()).slice(-2_000);
  });
  let gone = false;
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      gone = true;
      resolve();
    };
    child.once('close', end);
    child.once('error', end);
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await ended;
    clearTimeout(killer);
    await rm(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + START_LIMIT_MS;
  while (!(await isReady(url))) {
    if (gone || performance.now() > deadline) {
      await stop();
      throw new Error(`Prometheus did not start:\n${words}`);
    }
    await delay(POLL_MS);
  }
  return { url, stop, ...prometheusApi(url) };
}

/** JSON is YAML. */
function configuration({ targets, rules, scrapeSeconds }: PrometheusOptions): object {
  const jobs = Map.groupBy(targets, ({ job }) => job);
  return {
    global: { scrape_interval: `${scrapeSeconds}s`, evaluation_interval: `${scrapeSeconds}s` },
    storage: { exemplars: { max_exemplars: MAX_EXEMPLARS } },
    rule_files: rules,
    scrape_configs: [...jobs].map(([job, members]) => ({
      job_name: job,
      // What a metric says of its own (kube-state-metrics names namespaces and pods) goes before the target's labels.
      honor_labels: true,
      static_configs: members.map(({ url, labels }) => ({ targets: [new URL(url).host], labels })),
    })),
  };
}

function programArguments(program: string, config: string, folder: string, port: number): readonly string[] {
  // Unpacked from its package, the program does not find its page where it expects it.
  const assets = join(dirname(program), '../share/prometheus/web');
  return [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=exemplar-storage',
    '--log.level=warn',
    ...(existsSync(assets) ? [`--web.local-assets=${assets}`] : []),
  ];
}

async function isReady(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(1_000);
  const answer = await fetch(`${url}/-/ready`, { signal }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.ok === true;
}
