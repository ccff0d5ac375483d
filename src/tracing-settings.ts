import { z } from 'zod';
import type { ProviderName } from './core/provider-name.ts';
import { isProviderName } from './core/provider-name.ts';

/** Which requests are recorded. */
export interface SamplerSettings {
  /** Of all traces, 0 to 1. */
  readonly share: number;
  /** A caller's decision counts in place of ours. */
  readonly followsCallers: boolean;
}

/** All else is read from the other `OTEL_*` variables where tracing starts (`telemetry/sdk.ts`), mostly by the SDK. */
export interface TracingSettings {
  /** An OTLP endpoint is named, and nothing switches tracing off. */
  readonly enabled: boolean;
  readonly serviceName: string;
  readonly sampler: SamplerSettings;
  /** The auto-instrumentation bundle. */
  readonly auto: boolean;
  /** Providers that are told of the trace (W3C traceparent); none by default. */
  readonly propagateTo: readonly ProviderName[];
}

const roots = ['always_on', 'always_off', 'traceidratio'] as const;
const parentBased = 'parentbased_';
/** Those that the SDK knows: one that is misspelt would have it record everything. */
const samplers = [...roots, ...roots.map((root) => `${parentBased}${root}` as const)] as const;
type SamplerName = (typeof samplers)[number];

/** As the SDK reads them, where spans are its own. */
function readSampler(name: SamplerName = 'parentbased_always_on', ratio = 1): SamplerSettings {
  const share = name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio;
  return { share, followsCallers: name.startsWith(parentBased) };
}

/** The variables of `TracingSettings`, for the environment's schema. */
export const tracingVariables = {
  GW_OTEL_AUTO: z
    .enum(['0', '1', 'true', 'false'])
    .transform((value) => value === '1' || value === 'true')
    .default(false)
    .describe("OpenTelemetry auto-instrumentation beside the gateway's own spans"),
  GW_TRACE_PROPAGATE_TO: z
    .string()
    .default('')
    .transform((text) => text.split(',').map((name) => name.trim()))
    .transform((names) => names.filter((name) => name !== ''))
    .refine((names) => names.every(isProviderName), 'must be provider names, separated by commas')
    .describe(
      'providers that get a `traceparent`, comma-separated, for instance `self_hosted`; only where traces are exported',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional().describe('where traces go; without it none are made'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional().describe('the same, for traces only'),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .string()
    .optional()
    .describe('how they go there: `http/protobuf` (what it is without it), `http/json` or `grpc`'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: z.string().optional().describe('the same, for traces only'),
  OTEL_TRACES_EXPORTER: z.string().optional().describe('`none` switches tracing off'),
  OTEL_SDK_DISABLED: z.string().optional().describe('`true` switches tracing off'),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers)
    .optional()
    .describe('which requests are recorded: `parentbased_traceidratio` and the like; without it all are'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe('the share of them, for a sampler by ratio'),
  OTEL_SERVICE_NAME: z.string().default('model-gateway').describe('name of the service on spans'),
};

type TracingEnvironment = z.infer<z.ZodObject<typeof tracingVariables>>;

/** The SDK takes another for none of them, and goes on with its default. */
const protocols = ['http/protobuf', 'http/json', 'grpc'];

/**
 * Why traces could not go where they are to go, in one line that names the setting; null: they can, or are off. Over
 * gRPC a collector may be `host:port`; what goes over HTTP needs a URL.
 */
export function tracingMistake(env: TracingEnvironment): string | null {
  if (!readTracing(env).enabled) return null;
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const endpoint = (own ?? env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '').trim();
  const ownProtocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL?.trim();
  const protocol = ownProtocol ?? env.OTEL_EXPORTER_OTLP_PROTOCOL?.trim() ?? 'http/protobuf';
  if (!protocols.includes(protocol)) {
    const name = `OTEL_EXPORTER_OTLP_${ownProtocol === undefined ? '' : 'TRACES_'}PROTOCOL`;
    return `${name}: must be ${protocols.join(', ')}`;
  }
  if (protocol === 'grpc' || (/^https?:\/\/./i.test(endpoint) && URL.canParse(endpoint))) return null;
  const name = `OTEL_EXPORTER_OTLP_${own === undefined ? '' : 'TRACES_'}ENDPOINT`;
  return `${name}: must be a URL like http://collector:4318, or OTEL_EXPORTER_OTLP_PROTOCOL be grpc`;
}

export function readTracing(env: TracingEnvironment): TracingSettings {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const off =
    env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER?.trim() === 'none';
  return {
    enabled: endpoint !== undefined && !off,
    serviceName: env.OTEL_SERVICE_NAME,
    sampler: readSampler(env.OTEL_TRACES_SAMPLER, env.OTEL_TRACES_SAMPLER_ARG),
    auto: env.GW_OTEL_AUTO,
    propagateTo: env.GW_TRACE_PROPAGATE_TO.filter(isProviderName),
  };
}
