import type { UpstreamHeaders } from '../../core/outcome.ts';
import { errorKindOfStatus } from '../error-kind.ts';
import type { UpstreamError } from '../provider.ts';
import { readUpstreamError } from '../upstream-error.ts';
import type { Dialect } from './dialect.ts';

const unknownModelCodes = new Set(['model_not_found', 'model_not_available']);

/** Reads an answer whose status is not 200. The status decides, but for the cases in which it lies. */
export function readCompatibleError(
  dialect: Dialect,
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  nowMs: number,
): UpstreamError {
  return readUpstreamError(status, headers, body, nowMs, (error) => {
    const byStatus = errorKindOfStatus(status);
    const mayBeModel = byStatus === 'refused' || byStatus === 'unexpected-status';
    const unknownModel = mayBeModel && error.code !== null && unknownModelCodes.has(error.code);
    return dialect.errorKind(status, error) ?? (unknownModel ? 'not-found' : byStatus);
  });
}
