import { ByteBuffer } from '../core/byte-buffer.ts';

/** What a vendor has sent and nobody has taken yet. One piece stays as it came; more are gathered in one buffer. */
export class HeldBytes {
  #only: Buffer | null = null;
  #gathered: ByteBuffer | null = null;

  get length(): number {
    return this.#gathered?.length ?? this.#only?.length ?? 0;
  }

  add(piece: Buffer): void {
    if (this.#gathered !== null) {
      this.#gathered.append(piece);
    } else if (this.#only === null) {
      this.#only = piece;
    } else {
      this.#gathered = new ByteBuffer();
      this.#gathered.append(this.#only);
      this.#gathered.append(piece);
      this.#only = null;
    }
  }

  /** All of it; nothing is held afterwards. */
  take(): Buffer {
    const bytes = this.#gathered?.release() ?? this.#only ?? Buffer.alloc(0);
    this.#gathered = null;
    this.#only = null;
    return bytes;
  }
}
