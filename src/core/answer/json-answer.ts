/** A whole answer as JSON text. */
export interface JsonAnswer {
  readonly json: string;
  /** Of `json` in UTF-8, which whoever made the text knows: to count them again takes 1 µs. */
  readonly bytes: number;
}

export function jsonAnswer(value: unknown): JsonAnswer {
  const json = JSON.stringify(value);
  return { json, bytes: Buffer.byteLength(json) };
}
