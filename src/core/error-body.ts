import { frame } from './answer/sse-frame.ts';
import type { AttemptReport, ErrorType, GatewayError } from './errors.ts';

/** The one error envelope; all four of OpenAI's fields are always there. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ErrorType;
    readonly param: string | null;
    readonly code: string | null;
    readonly request_id: string;
    readonly attempts?: readonly AttemptReport[];
  };
}

export function errorBody(error: GatewayError, requestId: string): ErrorBody {
  const { message, type, param, code, attempts } = error;
  const shared = { message, type, param, code, request_id: requestId };
  return { error: attempts === null ? shared : { ...shared, attempts } };
}

/** The event that tells a streaming client its answer is cut: no `[DONE]` follows it. */
export function errorEvent(error: GatewayError, requestId: string): string {
  return frame(JSON.stringify(errorBody(error, requestId)));
}
