import fc from 'fast-check';
import { isKeptNumber } from '../../src/core/json/kept-number.ts';

interface Place {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null || isKeptNumber(value)) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesIn(holder[key])]);
}

const oddities = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  JSON.rawJSON('1e400'),
  JSON.rawJSON('12345678901234567890'),
  '',
  'text',
  [],
  {},
  [null],
  ['a'],
  [[]],
  [{}],
  { a: 1 },
  { 0: {} },
];

/** Where a value is put, which, and whether it is taken away instead. */
export const swaps = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...oddities), fc.boolean()), {
  minLength: 1,
  maxLength: 3,
});
type Swaps = readonly (readonly [at: number, odd: unknown, remove: boolean])[];

/** A copy of `original` with the changes made. */
export function mutated(original: unknown, changes: Swaps): unknown {
  const root = { value: structuredClone(original) };
  for (const [at, odd, remove] of changes) {
    const places = placesIn(root);
    const { holder, key } = places[at % places.length] as Place;
    if (remove && !Array.isArray(holder) && holder !== root) delete holder[key];
    else holder[key] = isKeptNumber(odd) ? odd : structuredClone(odd);
  }
  return root.value;
}
