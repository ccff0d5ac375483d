import type { StreamEnd } from './open-stream.ts';

/** A JSON or HTML body is no stream, whatever the status says: it is read whole and judged. */
export function isEventStream(contentType: string): boolean {
  return !/json|html/i.test(contentType);
}

/** How an open stream ends whose time is up; `unread`: nobody takes what comes. */
export function overdueEnd(unread: boolean, requestIsOver: boolean): StreamEnd {
  if (unread) return { kind: 'cancelled', reason: 'client-gone' };
  if (requestIsOver) return { kind: 'failed', reason: 'The limit of the request was reached.' };
  return { kind: 'failed', reason: 'The upstream stalled.', idle: true };
}

/**
 * The end as the consumer of a stream gets it. `served`: the client had left with its whole answer and only the usage
 * was waited for, so there is nobody to whom the stream failed.
 */
export function endForConsumer(end: StreamEnd, served: boolean): StreamEnd {
  return served && end.kind === 'failed' ? { kind: 'cancelled', reason: 'client-gone' } : end;
}
