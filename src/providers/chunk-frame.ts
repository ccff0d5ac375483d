/** What all chunks of one stream have in common. */
export interface ChunkHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** One `chat.completion.chunk` with one choice, framed as a server-sent event. */
export function chunkFrame(
  head: ChunkHead,
  index: number,
  delta: object,
  finishReason: string | null,
): string {
  const chunk = {
    id: head.id,
    object: 'chat.completion.chunk',
    created: head.created,
    model: head.model,
    choices: [{ index, delta, finish_reason: finishReason }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const dataPrefix = Buffer.from('data: ');
const eventEnd = Buffer.from('\n\n');

/** The bytes of one event's data, framed again. They must not hold a line end. */
export function frameData(data: Buffer): Buffer {
  return Buffer.concat([dataPrefix, data, eventEnd], dataPrefix.length + data.length + eventEnd.length);
}

/** All parts in order as one buffer; null when there are none. */
export function joinFrames(parts: readonly Buffer[]): Buffer | null {
  const [only] = parts;
  if (only === undefined) return null;
  return parts.length === 1 ? only : Buffer.concat(parts);
}
