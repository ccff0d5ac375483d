import { mostLooked } from '../../../src/core/json/inexact-number.ts';
import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Leaving } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';

const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];

/** Exact, and long: so many of them in one body count as inexact unseen. */
const longNumber = (): number => 1e20;

/** Values that cost the heap many times the bytes they are sent in; see the decision on degradation. */
const shapes: readonly [(index: number) => unknown, ...((index: number) => unknown)[]] = [
  () => ({}),
  () => [],
  () => [[]],
  () => [1.5, ''],
  (index) => ({ [`k${index}`]: 1.5 }),
  (index) => ({ [`k${index}`]: {} }),
  (index) => ({ [`k${index}`]: 1, [`l${index}`]: 1 }),
  (index) => ({ [String(4_000_000_000 + index)]: 1 }),
  (index) => `\u0101${index}`,
  longNumber,
];

/** Small and large bodies of such values, all held at once by a vendor that lets them wait. */
export function costlyCase(seed: number): AttackCase {
  const random = new Random(seed);
  const shape = random.pick(shapes);
  const count = random.size(100, 25_000);
  const x = Array.from({ length: count }, (_, index) => shape(seed * 100_000 + index));
  const wide = random.chance(0.3) ? { y: `\u0101${'a'.repeat(random.size(1, 512 * 1024))}` } : {};
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', x, ...wide } } };
  return {
    sending: {
      ...plainSending,
      headers: { 'x-gateway-override-model': 'openai:gpt-test' },
      body: { kind: 'chat', fields: { tools: [tool] }, totalBytes: 0 },
    },
    reading: random.chance(0.5)
      ? { kind: 'all' }
      : { kind: 'leave', afterBytes: 0, afterMs: random.size(1, 1_500), how: random.pick(leavings) },
    vendor: { begins: 'whole', steps: [{ kind: 'wait', ms: 1_000 }, { kind: 'reset' }], sound: false },
    statuses: shape === longNumber && count > mostLooked ? [422, 503] : [502, 503, 504],
  };
}
