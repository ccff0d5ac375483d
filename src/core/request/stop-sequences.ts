import type { ChatRequest } from './chat-request.ts';

/** What an answer is to stop at. To stop at nothing (`[]`, `''`) is no wish, and vendors refuse it where it stands. */
export function stopSequences({ stop = [] }: ChatRequest): readonly string[] {
  const given = typeof stop === 'string' ? [stop] : stop;
  return given.filter((sequence) => sequence !== '');
}
