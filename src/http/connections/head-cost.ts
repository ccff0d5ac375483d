import type { IncomingMessage } from 'node:http';

/** A request, its response, Fastify's two and the closures that wait: measured at 2 KB. */
const requestBytes = 2 * 1024;
/** A name or a value of its head, besides its text. */
const headTextBytes = 45;

/** No less than what a request keeps of the heap for its head, as long as it is there; bytes. */
export function headCost({ url, rawHeaders }: Pick<IncomingMessage, 'url' | 'rawHeaders'>): number {
  let bytes = requestBytes + (url?.length ?? 0) + headTextBytes * rawHeaders.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
