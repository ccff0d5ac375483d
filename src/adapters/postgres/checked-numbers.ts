import { largestBigint } from '../../core/largest-bigint.ts';

/** Numbers as columns hold them; each throws RangeError for one that its type cannot hold. */

const largestInt4 = 2 ** 31 - 1;
const smallestBigint = -largestBigint;

export function checkedInteger(value: number): number {
  if (!Number.isInteger(value) || Math.abs(value) > largestInt4) throw new RangeError(`no int4: ${value}`);
  return value;
}

export function checkedCount(value: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`no int8: ${value}`);
  return value;
}

export function checkedBigint(value: bigint): bigint {
  if (value > largestBigint || value < smallestBigint) throw new RangeError(`no int8: ${value}`);
  return value;
}
