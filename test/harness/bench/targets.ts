import type { GatewayOptions } from './processes.ts';
import type { Suite } from './suites.ts';

/** Who is measured, by the name that the tables give it. */

/** The target that the others are measured against. */
export const FLOOR = 'bare Fastify';
export const BARE_HTTP = 'bare node:http';
/** The vendor itself, without anything between. */
export const DIRECT = 'direct';
/** With its defaults: metrics and the access line, no traces. */
export const GATEWAY = 'gateway';
export const CACHED = 'gateway, from the cache';
export const ANTHROPIC = "gateway, Anthropic's events translated";
export const FLOOR_TLS = 'bare Fastify, TLS to the vendor';
const GATEWAY_TLS = 'gateway, TLS to the vendor';
/** Not watched at all. */
export const UNWATCHED = 'no telemetry';
const METRICS = 'metrics';
export const SOME_TRACES = 'gateway, traces at 1 %';
export const ALL_TRACES = 'gateway, traces at 100 %';
const AUTO = 'gateway, traces at 100 %, auto-instrumentation';

const processesOf = (count: number): string => `gateway, ${count} processes`;
/** How many processes share the load of one, besides one. */
const moreProcesses = [2, 4] as const;

/** The rows of the first table. */
export const dutyRows: readonly string[] = [FLOOR, BARE_HTTP, GATEWAY, CACHED, ANTHROPIC];
/** The rows of the second one. */
export const tlsRows: readonly string[] = [FLOOR_TLS, GATEWAY_TLS];
/** The rows of the third one. */
export const telemetryRows: readonly string[] = [UNWATCHED, METRICS, GATEWAY, SOME_TRACES, ALL_TRACES, AUTO];

/** The rows of the fourth one. */
export const processRows: readonly string[] = [GATEWAY, ...moreProcesses.map(processesOf)];

const everySuite: readonly Suite[] = ['json', 'burst', 'paced', 'latency', 'first'];
const streamSuites: readonly Suite[] = ['json', 'burst', 'paced'];
const noAccessLine = { GW_LOG_LEVEL: 'warn' };

/** How one target is started, and what visits it. */
export interface TargetPlan extends GatewayOptions {
  readonly kind: 'gateway' | 'fastify' | 'http';
  readonly suites: readonly Suite[];
  /** Whose key the caller has; without one, OpenAI's. */
  readonly provider?: 'anthropic';
  /** Headers of its own requests. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly overTls?: true;
  /** That share its requests; one without it. */
  readonly processes?: number;
  /** Times that it is started anew, each for its part of the slices; once without it. */
  readonly starts?: number;
  /** Whose cost its own is divided by, which is started anew with it; `FLOOR` without it. */
  readonly against?: string;
}

/**
 * Two starts of one build differ by 0.04 of the floor: where compiled code comes to lie, and what was met first, is
 * chance. Of targets whose JSON requests have a goal that is what would be measured.
 */
export const starts = 3;

/** All of them; `collector` is where spans go. */
export function targetPlans(collector: string): Readonly<Record<string, TargetPlan>> {
  // Spans leave within the second or two of a measurement, so that sending them is counted too.
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_BSP_SCHEDULE_DELAY: '500' };
  const onePercent = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const besides = { kind: 'gateway', suites: streamSuites, against: GATEWAY } as const;
  return {
    [FLOOR]: { kind: 'fastify', suites: everySuite },
    [BARE_HTTP]: { kind: 'http', suites: everySuite },
    [GATEWAY]: { kind: 'gateway', suites: everySuite, starts },
    [CACHED]: { kind: 'gateway', suites: ['json'], headers: { 'x-gateway-cache': 'true' }, starts },
    [ANTHROPIC]: { kind: 'gateway', suites: ['burst', 'paced'], provider: 'anthropic' },
    [FLOOR_TLS]: { kind: 'fastify', suites: streamSuites, overTls: true },
    [GATEWAY_TLS]: { kind: 'gateway', suites: streamSuites, overTls: true, against: FLOOR_TLS },
    [UNWATCHED]: { ...besides, env: noAccessLine, preload: ['without-metrics'] },
    [METRICS]: { ...besides, env: noAccessLine },
    [SOME_TRACES]: { ...besides, env: { ...traces, ...onePercent }, starts },
    [ALL_TRACES]: { ...besides, env: traces, starts },
    [AUTO]: { ...besides, env: { ...traces, GW_OTEL_AUTO: '1' } },
    ...Object.fromEntries(
      moreProcesses.map((count) => [processesOf(count), { ...besides, processes: count }]),
    ),
  };
}
