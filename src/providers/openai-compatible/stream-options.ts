import type { ChatRequest } from '../../core/request/chat-request.ts';

/** True when the client sent stream options of its own: more than the request for usage that we make too. */
export function hasOwnStreamOptions({ stream_options: options }: ChatRequest): boolean {
  for (const name in options) if (name !== 'include_usage') return true;
  return false;
}

/** The form for servers that do not know `stream_options`: none are added to a stream request. */
export const withoutStreamOptions = 'without-stream-options';

/**
 * That form, for a 400 or 422 which names the field that we added to learn the usage of a stream. A client that put
 * more into it gets the error: it may be about its own option, and only the client can leave that out.
 */
export function formWithoutRefused(status: number, body: Buffer, request: ChatRequest): string | null {
  if (request.stream !== true || (status !== 400 && status !== 422) || hasOwnStreamOptions(request))
    return null;
  return body.includes('stream_options') || body.includes('include_usage') ? withoutStreamOptions : null;
}
