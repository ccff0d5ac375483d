import type { ChatRequest } from '../../core/chat-request.ts';

/** True when the client sent stream options of its own: more than the request for usage that we make too. */
export function hasOwnStreamOptions({ stream_options: options }: ChatRequest): boolean {
  for (const name in options) if (name !== 'include_usage') return true;
  return false;
}

/**
 * True for a 400 or 422 that names the field we added to learn the usage of a stream. A client that put more
 * into it gets the error: it may be about its own option, and only the client can leave that out.
 */
export function refusesStreamOptions(status: number, body: Buffer, request: ChatRequest): boolean {
  if ((status !== 400 && status !== 422) || hasOwnStreamOptions(request)) return false;
  return body.includes('stream_options') || body.includes('include_usage');
}
