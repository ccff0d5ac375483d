import type { GatewayOptions } from './processes.ts';

/** Who is measured, by the name that the tables give it. */

/** The target that the others are measured against. */
export const FLOOR = 'bare Fastify';
export const BARE_HTTP = 'bare node:http';
/** The vendor itself, without anything between. */
export const DIRECT = 'direct';
/** With its defaults: metrics and the access line, no traces. */
export const GATEWAY = 'gateway';
export const CACHED = 'gateway, from the cache';
/** Not watched at all; what watching costs is measured against it. */
export const UNWATCHED = 'no telemetry';
const METRICS = 'metrics';
const SOME_TRACES = 'gateway, traces at 1 %';
const ALL_TRACES = 'gateway, traces at 100 %';
const AUTO = 'gateway, traces at 100 %, auto-instrumentation';

/** The rows of the first table. */
export const dutyRows: readonly string[] = [FLOOR, BARE_HTTP, GATEWAY, CACHED];
/** The rows of the second table. */
export const telemetryRows: readonly string[] = [UNWATCHED, METRICS, GATEWAY, SOME_TRACES, ALL_TRACES, AUTO];

const noAccessLine = { GW_LOG_LEVEL: 'warn' };

/** How the gateways of the second table differ from the one with defaults. `collector` is where their spans go. */
export function telemetryGateways(collector: string): Readonly<Record<string, GatewayOptions>> {
  // Spans leave within the second or two of a measurement, so that sending them is counted too.
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_BSP_SCHEDULE_DELAY: '500' };
  const onePercent = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' };
  return {
    [UNWATCHED]: { env: noAccessLine, preload: ['without-metrics'] },
    [METRICS]: { env: noAccessLine },
    [SOME_TRACES]: { env: { ...traces, ...onePercent } },
    [ALL_TRACES]: { env: traces },
    [AUTO]: { env: { ...traces, GW_OTEL_AUTO: '1' } },
  };
}
