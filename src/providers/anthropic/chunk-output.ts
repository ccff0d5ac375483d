import { chunkFrame, chunkFrameStart } from '../chunk-frame.ts';
import type { JsonRecord } from '../json-value.ts';
import type { StreamTranslator } from '../provider.ts';

/** Anthropic gives one answer per request. */
const onlyChoice = 0;

/** The chunks that a stream is made into, of its one choice, until they are taken. */
export class ChunkOutput {
  readonly #names: Pick<StreamTranslator, 'id' | 'created' | 'model'>;
  #frameStart: string | null = null;
  #roleSent = false;
  #text = '';

  /** `names` may change until the first chunk, and then where `rename` says so. */
  constructor(names: Pick<StreamTranslator, 'id' | 'created' | 'model'>) {
    this.#names = names;
  }

  /** What all chunks begin with; null before the first one. */
  get frameStart(): string | null {
    return this.#frameStart;
  }

  rename(): void {
    this.#frameStart = null;
  }

  /** The role alone, unless it has been said. */
  begin(): void {
    if (!this.#roleSent) this.add({}, null);
  }

  add(delta: JsonRecord, finishReason: string | null): void {
    const whole = this.#roleSent ? delta : { role: 'assistant', content: '', ...delta };
    this.#roleSent = true;
    this.#frameStart ??= chunkFrameStart(this.#names, onlyChoice);
    this.#text += chunkFrame(this.#frameStart, whole, finishReason);
  }

  /** Null where there is nothing. */
  take(): Buffer | null {
    const text = this.#text;
    this.#text = '';
    return text === '' ? null : Buffer.from(text);
  }
}
