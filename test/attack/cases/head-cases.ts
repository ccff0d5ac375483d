import { maxHeaderFields } from '../../../src/http/connections/odd-requests.ts';
import { Random } from '../../harness/measure/random.ts';
import type { AttackCase, Auth, Leaving, Sending } from '../attack-case.ts';
import { plainSending } from '../attack-case.ts';

const kib = 1024;
/** Node's limit for a whole head (`--max-http-header-size`), with room on both sides for what it counts. */
const surelyTaken = 14 * kib;
const surelyRefused = 18 * kib;
/** Of those of a case: some of the client's own come on top. */
const surelyFewFields = maxHeaderFields - 20;

const leavings: readonly [Leaving, ...Leaving[]] = ['end', 'reset', 'silence'];

/** Fields that nobody asked for: many, long, or both. */
function flood(random: Random): Record<string, string> {
  return random.weighted<() => Record<string, string>>([
    [3, () => ({})],
    [
      3,
      () =>
        Object.fromEntries(
          Array.from({ length: random.size(1, 4_000) }, (_, index) => [`x-${index}`, String(index)]),
        ),
    ],
    [2, () => ({ 'x-long': 'a'.repeat(random.size(1, 200 * kib)) })],
    [1, () => ({ [`x-${'n'.repeat(random.size(1, 60 * kib))}`]: '1' })],
    [1, () => ({ cookie: 'c=1; '.repeat(random.size(1, 8_000)) })],
    [1, () => ({ 'x-forwarded-for': Array(random.size(1, 3_000)).fill('10.0.0.1').join(', ') })],
    [
      1,
      () => ({
        traceparent: '0'.repeat(random.size(1, 4_000)),
        tracestate: 'a=b,'.repeat(random.size(1, 3_000)),
      }),
    ],
  ])();
}

function statusesOf(
  auth: Auth,
  fields: Readonly<Record<string, string>>,
  expect: string | null,
): readonly number[] | null {
  const all = Object.entries(fields);
  const fieldBytes = all.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  if (fieldBytes > surelyRefused) return [431];
  if (all.length > maxHeaderFields) return [431];
  if (fieldBytes > surelyTaken || all.length > surelyFewFields) return null;
  if (expect !== null && expect !== '100-continue') return [417];
  return auth === 'known' ? [200] : [401];
}

/** Heads: floods of fields, fields without an end, byte by byte, left in the middle, and whatever may be expected. */
export function headCase(seed: number): AttackCase {
  const random = new Random(seed);
  const fields = flood(random);
  const expect = random.weighted<string | null>([
    [7, null],
    [2, '100-continue'],
    [1, random.pick(['100-Continue, x', 'x', '', '200-ok', '100-continue; q=1'])],
  ]);
  const auth = random.pick<Auth>(['known', 'known', 'none', 'unknown']);
  const stops = random.chance(0.25);
  const sending: Sending = {
    ...plainSending,
    auth,
    headers: { ...fields, ...(expect === null || expect === '100-continue' ? {} : { expect }) },
    body: { kind: 'chat', fields: {}, totalBytes: random.chance(0.2) ? random.size(kib, 100 * kib) : 0 },
    framing: random.pick(['length', 'chunked']),
    headPieceBytes: random.weighted([
      [3, 64 * kib],
      [1, random.size(1, 2 * kib)],
      [1, 1],
    ]),
    pauseMs: random.chance(0.3) ? random.int(1, 4) : 0,
    expectContinue: expect === '100-continue',
    stopIn: stops ? 'head' : 'never',
    stopAt: random.fraction(),
    stopHow: random.pick(leavings),
  };
  return { sending, reading: { kind: 'all' }, vendor: null, statuses: statusesOf(auth, fields, expect) };
}
