/** Bytes of one character, by number. */
const longestSpelling = 6;

type Holder = unknown[] | Record<string, unknown>;

/** Where a walk through the bytes of a JSON text stands: on each level an index, or the place of a key. */
export class JsonPath {
  readonly #json: Buffer;
  readonly #isArray: boolean[] = [];
  /** Index, or where the key begins; where it ends. */
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  /** What the levels are in the parsed value, as far as it was asked for. */
  readonly #holders: (Holder | null)[] = [];

  constructor(json: Buffer) {
    this.#json = json;
  }

  /** How many arrays and objects it is in. */
  get depth(): number {
    return this.#isArray.length;
  }

  enter(isArray: boolean): void {
    this.#isArray.push(isArray);
    this.#from.push(0);
    this.#to.push(0);
  }

  leave(): void {
    this.#isArray.pop();
    this.#from.pop();
    this.#to.pop();
    if (this.#holders.length > this.#isArray.length) this.#holders.pop();
  }

  next(): void {
    const top = this.#from.length - 1;
    if (this.#isArray[top] === true) this.#from[top] = (this.#from[top] as number) + 1;
  }

  key(from: number, to: number): void {
    this.#from[this.#from.length - 1] = from;
    this.#to[this.#to.length - 1] = to;
  }

  /** On this level, from 0, it is in an array. */
  isItemOf(level: number): boolean {
    return this.#isArray[level] === true;
  }

  /** On this level, from 0, it is in an object, below the key `name`. What is far longer is no spelling of it. */
  isUnder(level: number, name: string): boolean {
    if (this.#isArray[level] !== false) return false;
    const length = (this.#to[level] as number) - (this.#from[level] as number);
    return length <= longestSpelling * (name.length + 1) && this.#keyAt(level) === name;
  }

  /** It is at the member `name` of the outermost object. */
  isAt(name: string): boolean {
    return this.depth === 1 && this.isUnder(0, name);
  }

  /** `messages[1].content` */
  toString(): string {
    const text = this.#from.map((from, level) =>
      this.#isArray[level] === true ? `[${from}]` : `.${this.#keyAt(level)}`,
    );
    return text.join('').replace(/^\./, '');
  }

  /**
   * Puts `replace(value)` where the walk stands in `root`, which was parsed from the same text. Where a key was
   * given twice and the walk is at one that did not count, another value may be there, or none: `replace` looks first.
   * Each level is looked up once, however many values are replaced in it.
   */
  replaceIn(root: unknown, replace: (value: unknown) => unknown): void {
    const top = this.#isArray.length - 1;
    for (let level = this.#holders.length; level <= top; level += 1) {
      const value = level === 0 ? root : this.#valueAt(level - 1);
      this.#holders.push(this.#isHolder(value, level) ? value : null);
    }
    const holder = this.#holders[top] ?? null;
    if (holder === null) return;
    const key = this.#isArray[top] === true ? (this.#from[top] as number) : this.#keyAt(top);
    if (Object.hasOwn(holder, key)) {
      const own = holder as Record<number | string, unknown>;
      own[key] = replace(own[key]);
    }
  }

  #isHolder(value: unknown, level: number): value is Holder {
    return typeof value === 'object' && value !== null && Array.isArray(value) === this.#isArray[level];
  }

  #valueAt(level: number): unknown {
    const holder = this.#holders[level] ?? null;
    if (holder === null) return null;
    const key = this.#isArray[level] === true ? (this.#from[level] as number) : this.#keyAt(level);
    return Object.hasOwn(holder, key) ? (holder as Record<number | string, unknown>)[key] : null;
  }

  #keyAt(level: number): string {
    return JSON.parse(this.#json.toString('utf8', this.#from[level], this.#to[level])) as string;
  }
}
