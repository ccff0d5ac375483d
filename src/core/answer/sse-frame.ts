/**
 * How a server-sent event is written: here and nowhere else. One line of data, LF, and an empty line. Text and bytes
 * must hold no line end, which JSON never does. Events that vendors frame alike are passed on as they came
 * (`providers/openai-compatible/plain-template.ts`).
 */

export const frameStart = 'data: ';
export const frameEnd = '\n\n';

export function frame(text: string): string {
  return `${frameStart}${text}${frameEnd}`;
}

/** The end of every whole stream, and of none that was cut. */
export const doneFrame = frame('[DONE]');

export const frameStartBytes = Buffer.from(frameStart);
export const frameEndBytes = Buffer.from(frameEnd);

/** Adds the parts of one event whose data are these bytes. */
export function pushFrame(parts: Buffer[], data: Buffer): void {
  parts.push(frameStartBytes, data, frameEndBytes);
}
