import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { PinoInstrumentation } from '@opentelemetry/instrumentation-pino';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { register, supportsSyncHooks } from 'import-in-the-middle/register-hooks.mjs';

/** Where chat calls go: they have a span of their own already, whatever host a user's key names. */
const chatPath = /\/(chat\/completions|messages)$/;

/**
 * Our stores and other HTTP clients. Requests to us and from us to providers have spans of their own, so they
 * are left out here. Neither parameters of statements nor arguments of commands are recorded.
 */
export function createInstrumentations(): NodeSDKConfiguration['instrumentations'] {
  // ioredis is loaded as an ES module: only a loader hook can reach it.
  if (supportsSyncHooks()) register({ include: ['ioredis'] });
  return [
    new HttpInstrumentation({ disableIncomingRequestInstrumentation: true }),
    new UndiciInstrumentation({
      ignoreRequestHook: ({ method, path }) => method === 'POST' && chatPath.test(path),
    }),
    new PgInstrumentation({ requireParentSpan: true }),
    new IORedisInstrumentation({ requireParentSpan: true, dbStatementSerializer: (command) => command }),
    new PinoInstrumentation({ disableLogSending: true }),
  ];
}
