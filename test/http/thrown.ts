import { GatewayError } from '../../src/core/errors.ts';

/** What a function that refuses throws. */
export function thrown(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
