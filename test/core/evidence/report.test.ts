import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { ReportCheck } from '../../../src/core/evidence/check-report.ts';
import { publicKeyText, signerWith } from '../../../src/core/evidence/evidence-key.ts';
import { beginning, maxSealedLineBytes, sealLine } from '../../../src/core/evidence/sealed-line.ts';
import { watchedItems } from '../watched-items.ts';
import { facts, key, microsOf, otherKey, reportOf, rowAt, rows, userId, verdictOf } from './a-report.ts';

const whole = reportOf();
const lines = whole.trimEnd().split('\n');
const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
const join = (some: readonly string[]): string => some.map((line) => `${line}\n`).join('');
/** With another header. */
const other = reportOf({ facts: { storage_region: 'eu-west-1' } }).split('\n');
const numberOf = (kind: string, index = 0): number => {
  const found = parsed.flatMap((line, at) => (line['kind'] === kind ? [at] : []));
  return found[index] ?? -1;
};

/** Line and problem of the first broken link; null: there is none. */
function brokenAt(
  report: Buffer | string,
  publicKey?: string | null,
): [line: number, problem: string] | null {
  const verdict = verdictOf(report, publicKey);
  return verdict.kind === 'intact' ? null : [verdict.at.line, verdict.at.problem];
}

describe('a report', () => {
  test('is a header, the requests of each hour and its line, and a signed end', () => {
    expect(parsed.map(({ kind }) => kind)).toEqual([
      'header',
      ...['request', 'request', 'hour', 'hour'],
      ...['request', 'request', 'request', 'hour', 'hour'],
      ...['request', 'hour', 'end'],
    ]);
    expect(parsed[0]).toMatchObject({ ...facts, from: '2026-11-10T09:30:00.000000Z' });
    expect(verdictOf(whole)).toMatchObject({ kind: 'intact', header: facts });
  });

  test('counts what it lists, and all rows beside', () => {
    const sums = {
      rows: 56,
      listed: 6,
      bound_by: { deployment: 1, user: 1, request: 4, unknown: 0 },
      served_in: { global: 0, india: 4, cache: 1, none: 1 },
      attempts_in: { global: 0, india: 4, unknown: 0 },
    };
    expect(parsed.at(-1)).toMatchObject({ hours: 5, ...sums });
    expect(parsed[numberOf('hour', 1)]).toMatchObject({
      hour: '2026-11-10T10:00:00.000000Z',
      rows: 10,
      listed: 0,
    });
    expect(parsed[numberOf('hour', 2)]).toMatchObject({
      rows: 13,
      listed: 3,
      served_in: { cache: 1, none: 1 },
    });
  });

  test('says of a request by whose word, where it was served, by which key and at what address', () => {
    expect(parsed[1]).toMatchObject({
      bound_by: 'request',
      served_in: 'india',
      key_id: '22222222-2222-4222-8222-222222222222',
      address_class: 'public',
      attempts: [{ provider: 'sarvam', residency: 'india', key_id: '22222222-2222-4222-8222-222222222222' }],
    });
    expect(parsed[numberOf('request', 2)]).toMatchObject({ served_in: 'none', error: 'residency_error' });
  });

  test('says what came from where of attempts that failed, were cut, or were none', () => {
    const attempt = { provider: 'self_hosted', model: 'm', status: null, reason: '', latency_ms: 1 } as const;
    const place = { residency: 'india', declared_region: 'ap-south-1', address_class: 'private' } as const;
    const row = rowAt('09:40:00', 9, {
      status: 'incomplete',
      key_id: 'ours',
      attempts: [
        { ...attempt, reason: 'skipped: does not support n' },
        { ...attempt, end: 'failed', failure: 'unreachable', residency: 'india', key_id: 'first' },
        { ...attempt, end: 'cut', ...place, key_id: 'ours' },
      ],
    });
    const line = JSON.parse(reportOf({ rows: [row] }).split('\n')[1] ?? '') as Record<string, unknown>;
    expect(line).toMatchObject({
      served_in: 'india',
      address_class: 'private',
      attempts: [
        { end: null, key_id: null, residency: null },
        { end: 'failed', key_id: 'first', declared_region: null, address_class: null },
        { end: 'cut', key_id: 'ours', ...place },
      ],
    });
  });

  test('is checked by hand with sha256 over the bytes that stand there', () => {
    const [above = '', below = ''] = lines;
    const hash = /"hash":"(\w+)"\}$/.exec(above)?.[1];
    const digest = createHash('sha256').update(`${hash}\n${below.slice(0, below.lastIndexOf(',"hash":'))}`);
    expect(below).toContain(`,"hash":"${digest.digest('hex')}"}`);
  });
});

describe('the first broken link is found, and in its line, after', () => {
  /** One request in one hour: each kind of line. */
  const bytes = Buffer.from(
    reportOf({ rows: rows.slice(0, 1), untilMicros: microsOf('2026-11-10T10:00:00Z') }),
  );
  const lineOf = (at: number): number => bytes.subarray(0, at).filter((byte) => byte === 10).length + 1;

  test('a change of any byte', () => {
    expect(lineOf(bytes.length)).toBe(5);
    for (let at = 0; at < bytes.length; at += 1) {
      const change = [1, 0x20, 0x80][at % 3] ?? 1;
      const changed = Buffer.from(bytes);
      changed[at] = (bytes[at] ?? 0) ^ change;
      expect(brokenAt(changed)?.[0], `byte ${at} ^ ${change}`).toBe(lineOf(at));
    }
  });

  test('a cut at any byte', () => {
    expect(brokenAt(bytes)).toBeNull();
    for (let at = 0; at < bytes.length; at += 1) {
      expect(brokenAt(bytes.subarray(0, at))?.[0], `cut at ${at}`).toBe(lineOf(at));
    }
  });

  test('the removal of any line', () => {
    for (const index of lines.keys()) {
      expect(brokenAt(join(lines.toSpliced(index, 1)))?.[0], `line ${index + 1}`).toBe(index + 1);
    }
  });

  test('any line once more, or one of another report, between any two', () => {
    const others = [...lines, ...other.slice(0, -1)];
    for (const at of [...lines.keys(), lines.length]) {
      for (const other of others) {
        // Before the very same line, or as the header, it is the next one that does not follow.
        const follows = lines[at] === other || (at === 0 && other.startsWith('{"kind":"header"'));
        const expected = follows ? at + 2 : at + 1;
        expect(brokenAt(join(lines.toSpliced(at, 0, other)))?.[0], `${other} before ${at}`).toBe(expected);
      }
    }
  });

  test('a swap of any two lines, and of any two hours', () => {
    const hours = [...lines.keys()].filter((at) => parsed[at]?.['kind'] === 'hour');
    const blocks = hours.map((end, index) => lines.slice((hours[index - 1] ?? 0) + 1, end + 1));
    const index = fc.nat({ max: lines.length - 1 });
    fc.assert(
      fc.property(index, index, (one, two) => {
        fc.pre(one < two);
        const swapped = lines.with(one, lines[two] ?? '').with(two, lines[one] ?? '');
        expect(brokenAt(join(swapped))?.[0]).toBe(one + 1);
      }),
    );
    for (const one of blocks.keys()) {
      for (let two = one + 1; two < blocks.length; two += 1) {
        const swapped = blocks.with(one, blocks[two] ?? []).with(two, blocks[one] ?? []);
        const first = 2 + blocks.slice(0, one).flat().length;
        const found = brokenAt(join([lines[0] ?? '', ...swapped.flat(), lines.at(-1) ?? '']));
        expect(found, `hours ${one} and ${two}`).toEqual([first, expect.stringContaining('out of place')]);
      }
    }
  });
});

/** The report with one line made anew, its hash included. */
function forged(at: number, change: object): string {
  const {
    hash: _hash,
    signature: _signature,
    ...value
  } = { ...parsed[at], ...change } as Record<string, unknown>;
  const previous = at === 0 ? beginning : String(parsed[at]?.['previous'] ?? parsed[at - 1]?.['hash']);
  const sign = parsed[at]?.['kind'] === 'end' ? signerWith(key) : undefined;
  return join(lines.with(at, sealLine(previous, value, sign).line.trimEnd()));
}

const lineAt = (at: number): string => lines[at] ?? '';
const lastHour = numberOf('hour', 4);
const end = lines.length - 1;
const deep = '['.repeat(200_000) + ']'.repeat(200_000);

describe('whoever tampers is found:', () => {
  test.each<[name: string, report: string, line: number, problem: string]>([
    [
      'a signature taken off',
      join(lines.with(end, lineAt(end).replace(/,"signature":"[^"]+"/, ''))),
      end + 1,
      'has no signature',
    ],
    ['a signature of another key', reportOf({ signedWith: otherKey }), end + 1, 'written anew'],
    [
      'a report of another key',
      reportOf({ facts: { public_key: publicKeyText(otherKey) }, signedWith: otherKey }),
      1,
      'another key than yours',
    ],
    [
      'a header of another report',
      join([other[0] ?? '', ...lines.slice(1)]),
      2,
      'was changed, or the line above it was',
    ],
    [
      'an end of another report',
      join([...lines.slice(0, -1), other.at(-2) ?? '']),
      end + 1,
      'end of another report',
    ],
    ['a header made anew', forged(0, { storage_region: 'mars' }), 2, 'was changed, or the line above it was'],
    ['a request made anew', forged(1, { served_in: 'global' }), 3, 'was changed, or the line above it was'],
    [
      'the last request of an hour made anew',
      forged(2, { status: 'error' }),
      4,
      'some are missing or were changed',
    ],
    [
      'an hour made anew',
      forged(numberOf('hour'), { rows: 11 }),
      numberOf('hour') + 2,
      'hours are missing or out of place',
    ],
    [
      'counts that do not add up',
      forged(lastHour, { served_in: { global: 1, india: 0, cache: 0, none: 0 } }),
      lastHour + 1,
      'served_in.global',
    ],
    ['fewer rows than requests', forged(lastHour, { rows: 0 }), lastHour + 1, 'add up'],
    ['totals that do not add up', forged(end, { rows: 57 }), end + 1, 'add up to its requests: rows'],
    ['hours that do not add up', forged(end, { hours: 4 }), end + 1, 'hours'],
    [
      'the end before its time',
      join([...lines.slice(0, lastHour - 1), lineAt(end)]),
      lastHour,
      'hours are missing',
    ],
    ['a field too many', forged(1, { more: 1 }), 2, 'is no line of a report'],
    ['a field too few', forged(1, { key_id: undefined }), 2, 'is no line of a report'],
    [
      'a key twice',
      join(
        lines.with(1, lineAt(1).replace('"served_in":"india"', '"served_in":"global","served_in":"india"')),
      ),
      2,
      'a key twice',
    ],
    [
      'another spelling',
      join(lines.with(1, lineAt(1).replace('"india"', '"indi\\u0061"'))),
      2,
      'another spelling',
    ],
    ['spaces', join(lines.with(1, lineAt(1).replace(',', ', '))), 2, 'spaces'],
    ['carriage returns', lines.map((line) => `${line}\r\n`).join(''), 1, 'carriage return'],
    ['a byte order mark', `\ufeff${whole}`, 1, 'byte order mark'],
    ['an empty line', join(lines.toSpliced(3, 0, '')), 4, 'is not JSON'],
    ['a giant line', join(lines.toSpliced(3, 0, ' '.repeat(2 * maxSealedLineBytes))), 4, 'longer than'],
    [
      'a giant line without an end',
      join(lines.slice(0, 3)) + ' '.repeat(2 * maxSealedLineBytes),
      4,
      'longer than',
    ],
    ['a line nested beyond all bounds', join(lines.with(1, deep)), 2, 'is'],
    ['something behind the end', `${whole}{}\n`, end + 2, 'does not end in its hash'],
    ['a line of it behind the end', join([...lines, lineAt(end)]), end + 2, 'behind the end'],
    ['no line feed at its end', whole.slice(0, -1), end + 1, 'is cut off'],
    ['nothing at all', '', 1, 'is missing'],
    ['no text', '\xff\xfe\n', 1, 'is not'],
    [
      'a request of somebody else',
      reportOf({
        facts: { user_id: userId },
        rows: [rowAt('09:31:00', 1, { user_id: '33333333-3333-4333-8333-333333333333' })],
      }),
      2,
      'another user',
    ],
    [
      'requests in the wrong order',
      reportOf({ rows: [rowAt('09:31:00', 2), rowAt('09:31:00', 1)] }),
      3,
      'time that does not belong',
    ],
    [
      'a request of before the period',
      reportOf({ rows: [rowAt('09:29:59', 1)] }),
      2,
      'time that does not belong',
    ],
  ])('%s', (_name, report, line, problem) => {
    expect(brokenAt(report)).toEqual([line, expect.stringContaining(problem)]);
  });

  test('a line is looked at up to what is wrong first, however much it holds', () => {
    const { items, looks } = watchedItems('provider');
    const line = { ...parsed[1], attempts: [{}, ...items], hash: '0'.repeat(64) };
    const text = JSON.stringify(line);
    const check = new ReportCheck(null);
    vi.spyOn(JSON, 'parse').mockReturnValueOnce(line);
    check.take(Buffer.from(text));
    vi.restoreAllMocks();
    expect(check.broken?.problem).toMatch(/^is no line of a report: attempts: 0: provider: /);
    // They were written here, and where the line is compared with what reports write.
    expect(looks).toEqual([2, 2, 2]);
  });

  test('a signature spelled in another way', () => {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const [, last = ''] = /(.)=="\}$/.exec(lineAt(end)) ?? [];
    const twin = digits[digits.indexOf(last) ^ 1] ?? '';
    const spelled = lineAt(end).replace(/.=="\}$/, `${twin}=="}`);
    expect(brokenAt(join(lines.with(end, spelled)))).toEqual([
      end + 1,
      expect.stringContaining('written anew'),
    ]);
  });

  test('not where nobody said whose key it is: whole, and that is all', () => {
    const report = reportOf({ facts: { public_key: publicKeyText(otherKey) }, signedWith: otherKey });
    expect(brokenAt(report, null)).toBeNull();
    expect(brokenAt(reportOf({ signedWith: otherKey }), null)?.[0]).toBe(end + 1);
  });
});

test('a report is the same in pieces of any size', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), (size) => {
      expect(verdictOf(whole, publicKeyText(key), size).kind).toBe('intact');
    }),
    { numRuns: 30 },
  );
});
