import type { SamplerSettings } from '../tracing-settings.ts';
import { traceIdDigits } from './hex-digits.ts';

const wordDigits = 8;
const twoTo32 = 2 ** 32;

/** Whether a request is recorded, decided before there is a span of it: most have none. */
export class HeadSampler {
  readonly followsCallers: boolean;
  readonly #bound: number;

  constructor({ share, followsCallers }: SamplerSettings) {
    this.followsCallers = followsCallers;
    this.#bound = share === 1 ? twoTo32 : Math.floor(share * (twoTo32 - 1));
  }

  /**
   * As the SDK's TraceIdRatioBasedSampler decides: services with the same share record the same traces. `fold`: of the
   * trace id, see `foldOf`.
   */
  samples(fold: number): boolean {
    return fold < this.#bound;
  }
}

/** The four words of a trace id, folded into one. */
export function foldOf(traceId: string): number {
  let fold = 0;
  for (let at = 0; at < traceIdDigits; at += wordDigits) {
    fold ^= Number.parseInt(traceId.slice(at, at + wordDigits), 16);
  }
  return fold >>> 0;
}
