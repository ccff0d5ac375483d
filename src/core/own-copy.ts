/**
 * The bytes in memory of their own, for what is kept. A slice would keep the whole buffer that it is part of, and
 * `Buffer.from` puts what is small into a slab that all of its neighbours keep.
 */
export function ownCopy(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
