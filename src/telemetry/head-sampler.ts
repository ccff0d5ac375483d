import { digitOf } from './protobuf-bytes.ts';

const wordDigits = 8;
const traceDigits = 32;
const twoTo32 = 2 ** 32;

/** Whether a request is recorded, decided before there is a span of it: most have none. */
export class HeadSampler {
  /** A caller's decision counts in place of ours. */
  readonly followsCallers: boolean;
  readonly #bound: number;

  /** `share`: of all traces, 0 to 1. */
  constructor(share: number, followsCallers: boolean) {
    this.followsCallers = followsCallers;
    this.#bound = share === 1 ? twoTo32 : Math.floor(share * (twoTo32 - 1));
  }

  /** As the SDK's TraceIdRatioBasedSampler decides: services with the same share record the same traces. */
  samples(traceId: string): boolean {
    return this.#bound === twoTo32 || (this.#bound > 0 && foldOf(traceId) < this.#bound);
  }
}

/** The four words of an id, folded into one. */
function foldOf(traceId: string): number {
  let fold = 0;
  for (let at = 0; at < traceDigits; at += wordDigits) {
    let word = 0;
    for (let index = at; index < at + wordDigits; index += 1) {
      word = (word << 4) | digitOf(traceId.charCodeAt(index));
    }
    fold ^= word;
  }
  return fold >>> 0;
}

const defaultSampler = 'parentbased_always_on';
const shares = new Map<string, number | 'argument'>([
  ['always_on', 1],
  ['always_off', 0],
  ['traceidratio', 'argument'],
]);
const parentBased = 'parentbased_';

/**
 * The sampler that `OTEL_TRACES_SAMPLER` names, with `OTEL_TRACES_SAMPLER_ARG`, as the SDK reads them: what it does not
 * know records everything, and so does a ratio that is none. `warn` is told.
 */
export function readSampler(
  name: string | undefined,
  argument: number | undefined,
  warn: (message: string) => void,
): HeadSampler {
  const asked = name ?? defaultSampler;
  const followsCallers = asked.startsWith(parentBased);
  const share = shares.get(followsCallers ? asked.slice(parentBased.length) : asked);
  if (share === undefined) {
    warn(`unknown OTEL_TRACES_SAMPLER value "${asked}", using ${defaultSampler}`);
    return new HeadSampler(1, true);
  }
  if (share !== 'argument') return new HeadSampler(share, followsCallers);
  if (argument === undefined || !(argument >= 0 && argument <= 1)) {
    warn('OTEL_TRACES_SAMPLER_ARG has to be a number from 0 to 1: every trace is recorded');
    return new HeadSampler(1, followsCallers);
  }
  return new HeadSampler(argument, followsCallers);
}
