import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { register, supportsSyncHooks } from 'import-in-the-middle/register-hooks.mjs';

/** Where chat calls go: they have a span of their own already, whatever host a user's key names. */
const chatPath = /\/(chat\/completions|messages)$/;
/** Parts of the bundle that see something of ours; an operator's own list wins. */
const usefulParts = 'http,undici,pg,ioredis,pino';

/**
 * Our stores and other HTTP clients. Requests to us and from us to providers have spans of their own, so they
 * are left out here. Neither parameters of statements nor arguments of commands are recorded.
 */
export function createInstrumentations(): NodeSDKConfiguration['instrumentations'] {
  // Both are replaced as they are imported, which only a loader hook can do.
  if (supportsSyncHooks()) register({ include: ['ioredis', 'pino'] });
  // biome-ignore lint/style/noProcessEnv: the bundle takes the list of its parts from here and nowhere else.
  process.env['OTEL_NODE_ENABLED_INSTRUMENTATIONS'] ??= usefulParts;
  return getNodeAutoInstrumentations({
    '@opentelemetry/instrumentation-http': { disableIncomingRequestInstrumentation: true },
    '@opentelemetry/instrumentation-undici': {
      ignoreRequestHook: ({ method, path }) => method === 'POST' && chatPath.test(path),
    },
    '@opentelemetry/instrumentation-pg': { requireParentSpan: true },
    '@opentelemetry/instrumentation-ioredis': {
      requireParentSpan: true,
      dbStatementSerializer: (command) => command,
    },
    '@opentelemetry/instrumentation-pino': { disableLogSending: true },
  });
}
