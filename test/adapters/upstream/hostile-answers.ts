import { readFileSync } from 'node:fs';

/** Latin-1, or what it is made of. */
type Text = string | readonly (string | { readonly text: string; readonly times: number })[];

/** A line of the file: what a vendor sends before it closes the connection, and how it is to be understood. */
interface Line {
  readonly name: string;
  readonly bytes: Text;
  /** `protocol` and `too-large`: refused, and why. */
  readonly verdict: 'whole' | 'cut' | 'protocol' | 'too-large';
  /** These three of whole answers only. */
  readonly status?: number;
  readonly body?: string;
  readonly kept?: boolean;
}

export interface HostileAnswer extends Omit<Line, 'bytes'> {
  readonly bytes: Buffer;
}

function textOf(text: Text): string {
  if (typeof text === 'string') return text;
  return text.map((part) => (typeof part === 'string' ? part : part.text.repeat(part.times))).join('');
}

const file = new URL('../../fixtures/upstream/answers.json', import.meta.url);

/** Answers by which servers make two readers see two different things, and such as only look like it. */
export const hostileAnswers: readonly HostileAnswer[] = (
  JSON.parse(readFileSync(file, 'utf8')) as Line[]
).map((line) => ({ ...line, bytes: Buffer.from(textOf(line.bytes), 'latin1') }));
