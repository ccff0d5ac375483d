const masked = '[secret]';

/** A plaintext secret that cannot be printed by accident. `reveal()` is called at the moment of use only. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return masked;
  }

  toJSON(): string {
    return masked;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return masked;
  }
}
