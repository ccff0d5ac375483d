/**
 * Choices that follow from a seed alone: the same seed makes the same case on every machine (mulberry32, public
 * domain, by Tommy Ettinger). Generators take this and nothing else. The seeds of test/attack/fixtures depend on every
 * method: a changed one gives them new meanings.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Neighbouring seeds begin alike; a few steps take them apart.
    for (let step = 0; step < 4; step += 1) this.fraction();
  }

  /** In [0, 1). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1));
  }

  /** Small numbers as often as large ones: evenly over the orders of magnitude. */
  size(from: number, to: number): number {
    const low = Math.log(from + 1);
    return Math.floor(Math.exp(low + this.fraction() * (Math.log(to + 1) - low))) - 1 || from;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** A whole number from 0 on, less than the limit. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** One of a list that is not empty. */
  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const left = [...items];
    return items.map(() => left.splice(this.below(left.length), 1)[0] as Item);
  }

  /** Each choice as often as its weight says. */
  weighted<Item>(choices: readonly (readonly [weight: number, item: Item])[]): Item {
    let left = this.fraction() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, item] of choices) {
      left -= weight;
      if (left < 0) return item;
    }
    return (choices.at(-1) as readonly [number, Item])[1];
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.int(0, 255);
    return bytes;
  }
}

/** The same for every run, so that a failure is a change of the code. */
const defaultSeed = 1;

/** The seed in this environment variable: a number, `random` for one below `limit`, or the default. */
export function seedIn(variable: string, limit = 2 ** 31): number {
  const text = process.env[variable] ?? String(defaultSeed);
  const seed = text === 'random' ? Math.floor(Math.random() * limit) : Number(text);
  if (!Number.isInteger(seed)) throw new Error(`${variable} is a number or "random".`);
  return seed;
}
