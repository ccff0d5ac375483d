import type { DestinationStream, Logger } from 'pino';
import { pino } from 'pino';
import { escapeUnprintable } from '../core/json/unprintable.ts';
import { redactReason } from '../core/secret/redact.ts';

const maxStackLength = 4000;

/**
 * The fields that may be logged; those of the access line have the names they have there. Anything else is left out,
 * so that nobody logs a body, a header or a key by passing one object too many.
 */
const allowedFields = new Set([
  'active',
  'admin_url',
  'audit',
  'by',
  'client_address',
  'code',
  'done',
  'err',
  'file',
  'generation',
  'hash',
  'ignored',
  'index',
  'key_id',
  'left_out',
  'message',
  'migration',
  'migrations',
  'ms',
  'of',
  'partition',
  'period',
  'problem',
  'provider',
  'proxies',
  'reason',
  'region',
  'report',
  'request_id',
  'rows',
  'setting',
  'share_percent',
  'span_id',
  'status',
  'trace_flags',
  'trace_id',
  'url',
  'user_id',
]);

function allowed(fields: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const name in fields) if (allowedFields.has(name)) kept[name] = fields[name];
  return kept;
}

interface ErrorFields {
  readonly type: string;
  readonly message: string;
  readonly code?: unknown;
  readonly stack?: string;
}

/** An error without whatever a library has hung on it: queries, parameters, sockets, headers. */
function errorFields(error: unknown): ErrorFields {
  if (!(error instanceof Error)) return { type: typeof error, message: redactReason(String(error)) };
  const { code } = error as { code?: unknown };
  const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? [];
  return {
    type: error.name,
    message: redactReason(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack: frames.join('\n').slice(0, maxStackLength),
  };
}

/** JSON lines for `destination`. */
export function createLogger(level: string, destination: DestinationStream): Logger {
  const printable = { write: (line: string) => destination.write(escapeUnprintable(line)) };
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: allowed },
      serializers: { err: errorFields },
    },
    printable,
  );
}
