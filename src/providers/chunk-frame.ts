import { frameEnd, frameStart } from '../core/answer/sse-frame.ts';

/** What all chunks of one stream have in common. */
export interface ChunkHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** The part of a frame that is the same for all chunks of one choice; worth keeping where each chunk is made anew. */
export function chunkFrameStart(head: ChunkHead, index: number): string {
  const { id, created, model } = head;
  const chunk = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
  return `${frameStart}${chunk.slice(0, -1)},"choices":[{"index":${index},"delta":`;
}

/** The whole frame: one `chat.completion.chunk` with one choice, as a server-sent event. */
export function chunkFrame(start: string, delta: object, finishReason: string | null): string {
  return `${start}${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finishReason)}}]}${frameEnd}`;
}

/** All parts in order as one buffer; null when there are none. */
export function joinFrames(parts: readonly Buffer[]): Buffer | null {
  const [only] = parts;
  if (only === undefined) return null;
  return parts.length === 1 ? only : Buffer.concat(parts);
}
