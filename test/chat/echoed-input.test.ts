import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VerbatimError } from '../../src/chat/verbatim-error.ts';
import { errorBody } from '../../src/core/error-body.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { maskEchoes } from '../../src/core/secret/mask-echo.ts';
import { cpuMsOf } from '../harness/measure/cpu-time.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { FakeUpstream } from './story.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

/** Vendors answer with the very input they refuse: nothing of it is kept in rows, attempts, telemetry or our own errors. */

const marker = 'Quarterly-numbers';
const prompt = `${marker} of the northern branch, not for anybody else to read`;

/** Everything that is kept of a failed request, as text. */
async function keptOf(stream: boolean, act: (upstream: FakeUpstream) => void): Promise<string> {
  const world = new World();
  const call = callOf({ request: { stream, messages: [{ role: 'user', content: prompt }] } });
  const running = world
    .answerChat(call, accountOf([heldKey('openai')]), new FakeClient(), () => Promise.resolve(null))
    .catch((error: unknown) => error);
  act(await world.transport.call(0));
  const error = await running;
  await settled();
  expect(world.rows).toHaveLength(1);
  const told = error instanceof GatewayError ? errorBody(error, 'r') : error instanceof VerbatimError;
  const { attempts } = world.telemetry;
  const records = attempts.map(({ end, answer, usage }) => {
    const failure = end.kind === 'failed' ? { ...end.failure, reply: null } : end;
    return { failure, answer, usage };
  });
  const withoutBigints = (_key: string, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value;
  return JSON.stringify(
    [world.rows.map((row) => ({ ...row, candidates: [] })), told, records, world.bugs],
    withoutBigints,
  );
}

const complaint = {
  loc: ['body', 'messages', 0, 'content'],
  msg: 'Input should be a valid list',
  type: 'list_type',
  input: prompt,
  ctx: { given: prompt },
};

const shapes: readonly (readonly [name: string, body: unknown, kept: string])[] = [
  [
    'a validation list',
    { detail: [complaint] },
    'body.messages.0.content Input should be a valid list (list_type)',
  ],
  ['a validation list inside of an error', { error: { message: [complaint], code: 422 } }, 'valid list'],
  ['an error of unknown shape', { error: { what: prompt, request: { messages: [prompt] } } }, 'status 422'],
  ['an unknown shape', { request: { messages: [{ content: prompt }] } }, 'status 422'],
  ['a type and a code that are sentences', { error: { message: 'no', type: prompt, code: prompt } }, 'no'],
  ['a path of the input itself', { detail: [{ ...complaint, loc: [prompt] }] }, 'valid list'],
  [
    'the sentence of a validator',
    { error: { message: `1 validation error: bad [type=x, input_value='${prompt}']` } },
    '1 validation error: bad',
  ],
  ['the list of a validator as text', { message: `[{'msg': 'bad', 'input': '${prompt}'}]` }, 'bad'],
  [
    'a message that quotes it',
    { error: { message: `cannot read "${prompt}" here` } },
    'cannot read \\"[input]\\" here',
  ],
  [
    'what the model said and llama.cpp could not parse',
    {
      error: {
        code: 500,
        message: `Failed to parse input at pos 184: <think>${marker} are up`,
        type: 'server_error',
      },
    },
    'Failed to parse input at pos 184…',
  ],
  [
    'what the model said and Ollama could not parse',
    {
      error: {
        message: `error parsing tool call: raw='{"q":"${marker}', err=invalid character`,
        type: 'api_error',
      },
    },
    'error parsing tool call…',
  ],
  ['plain text that quotes it', `refused: ${prompt}`, 'refused: [input]'],
  [
    'the whole request as text',
    JSON.stringify({ messages: [{ role: 'user', content: prompt }] }),
    'status 422',
  ],
];

describe('an error that echoes the request', () => {
  test.each(shapes)('as %s leaves none of it behind', async (_name, body, words) => {
    for (const stream of [false, true]) {
      const kept = await keptOf(stream, (upstream) => upstream.reply(422, body));
      expect(kept).not.toContain(marker);
      expect(kept).toContain(words);
    }
  });

  test.each(shapes)('as %s in a 200 leaves none of it behind', async (_name, body) => {
    const error = typeof body === 'string' ? { error: body } : { object: 'error', ...(body as object) };
    expect(await keptOf(false, (upstream) => upstream.reply(200, error))).not.toContain(marker);
    for (const before of [[], [sse(openAiChunk('m', { content: 'Hi' }))]]) {
      const act = (upstream: FakeUpstream): void => upstream.stream(...before, sse(error)).end();
      expect(await keptOf(true, act)).not.toContain(marker);
    }
  });

  /** Any JSON in which every string is the prompt, under the names that error bodies use. */
  const echo = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constant(prompt),
      fc.constant(`${prompt}\n${prompt}`),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom(
          'error',
          'detail',
          'message',
          'msg',
          'type',
          'loc',
          'input',
          'ctx',
          'code',
          'param',
          'object',
          'errors',
          prompt,
        ),
        tie('value'),
        { maxKeys: 4 },
      ),
    ),
  })).value;

  test('in any shape leaves none of it behind', async () => {
    await fc.assert(
      fc.asyncProperty(
        echo,
        fc.constantFrom(200, 400, 422, 500),
        fc.boolean(),
        async (body, status, stream) => {
          const text = JSON.stringify(body);
          expect(await keptOf(stream, (upstream) => upstream.reply(status, text))).not.toContain(marker);
        },
      ),
      { numRuns: 100 },
    );
  });
});

const maskEcho = (text: string, request: object): string => maskEchoes([text], request)[0] as string;

describe('an echo', () => {
  test('is found wherever it stands, and the rest is kept', () => {
    const letter = fc.constantFrom(...'abcdefghij klmnop\n');
    const text = (minLength: number, maxLength: number) => fc.string({ unit: letter, minLength, maxLength });
    fc.assert(
      fc.property(text(0, 80), text(64, 200), text(0, 80), (before, said, after) => {
        const request = { messages: [{ content: [{ type: 'text', text: before + said + after }] }] };
        const quoted = said.replace(/\s+/g, ' ').trim();
        fc.pre(quoted.length >= 32);
        expect(maskEcho(`Refused: <${quoted}>!`, request)).toBe('Refused: <[input]>!');
      }),
    );
  });

  const form = 'Patient: Asha Rao\nPhone: 98450 12345\nPAN: "ABCDE1234F"\nCity: Pune';
  const hindi = 'मरीज़ का नाम आशा राव है, उम्र चौंतीस साल, शहर पुणे';
  const python = (text: string): string => `'${text.replaceAll('\n', '\\n').replaceAll("'", "\\'")}'`;
  const ascii = (text: string): string =>
    JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

  test.each([
    ['JSON', JSON.stringify],
    ['JSON of ASCII only', ascii],
    ['JSON in JSON', (text: string) => JSON.stringify(JSON.stringify(text))],
    ['JSON of ASCII only in JSON', (text: string) => JSON.stringify(ascii(text))],
    ['Python', python],
  ])('is found where it is quoted as %s', (_form, quote) => {
    for (const said of [form, hindi]) {
      const clean = maskEcho(`Invalid request: {"content": ${quote(said)}}`.slice(0, 500), { content: said });
      expect(clean).toContain('Invalid request: {');
      expect(clean).toContain('[input]');
      expect(clean).not.toMatch(/Asha|Phone|PAN|Pune|\\u09[0-9a-f]{2}|[\u0900-\u097f]/);
    }
  });

  test('is found in each form that it is quoted in, of which one text may have several', () => {
    const address = `https://clinic.example/x?p=%41sha%20Rao%2F${'diabetes%20type%202%2F'.repeat(4)}nine`;
    for (const said of [`${form}\n${address}`, `${form}\n${address}${address}`]) {
      const clean = maskEcho(`bad request: ${JSON.stringify(said)} and ${hindi}`, { content: [said, hindi] });
      expect(clean).toMatch(/^bad request: "\[input\][^"]*" and \[input\]$/);
      expect(clean).not.toMatch(/Asha|sha|Phone|Pune|diabetes/);
    }
  });

  test('that escapes would hide leaves other words as they were written', () => {
    expect(maskEcho('no such \\"model\\" in C:\\new at 100%20 of it all', { content: form })).toBe(
      'no such \\"model\\" in C:\\new at 100%20 of it all',
    );
  });

  test('of less than 32 characters is no echo, and costs nothing to look for in a long request', () => {
    const request = { messages: [{ content: 'x y z '.repeat(3_000_000) }] };
    const text = 'The model gpt-6 does not exist, or you have no access to it.';
    let masked = '';
    const tookMs = cpuMsOf(() => {
      masked = maskEcho(text, request);
    });
    expect(masked).toContain('gpt-6');
    expect(tookMs).toBeLessThan(1_000);
    expect(maskEcho(`see ${prompt.slice(0, 31)}`, { content: prompt })).toContain(marker);
  });

  const megabytes = 4_000_000;
  const filled = (piece: string): string => piece.repeat(megabytes / piece.length);
  const parts = (piece: string): string[] =>
    Array(4).fill(piece.repeat(1_000_000 / piece.length)) as string[];

  test.each<[what: string, text: string, said: string | string[]]>([
    ['one letter, in runs just too short', `${'a'.repeat(31)}b`.repeat(9), filled('a')],
    ['the same in parts', `${'a'.repeat(31)}b`.repeat(9), parts('a')],
    ['runs that meet runs', `${'a'.repeat(20)}b`.repeat(20), filled(`${'a'.repeat(20)}c`)],
    ['a period of two', `${'ab'.repeat(15)}c`.repeat(15), filled('ab')],
    [
      'words that are said again and again',
      'The quick brown fox: no, it jumps over nothing',
      filled('The quick brown fox '),
    ],
    ['an echo that is said again and again', prompt, filled(`${prompt} `)],
    ['lines of one letter', `${'a '.repeat(15)}b`.repeat(15), parts('a\n')],
    ['white space of all sorts', `${'a '.repeat(15)}b`.repeat(15), parts('\u00a0\n\t ')],
  ])('costs no more than its length to look for: %s', (_what, text, said) => {
    const request = { messages: [{ content: said }] };
    // 6 s with a place to compare at each character; a tenth of a second as it is.
    expect(cpuMsOf(() => maskEcho(text, request))).toBeLessThan(1_000);
  });

  /** Their low bytes are those of rare blanks, which a search of a text of wide letters stops at again and again. */
  test.each([' (', '(', ') ', '/ ', '_ ', '\u0180 ', '\t', '  '])(
    'costs no more to look for in wide letters with %j than in others',
    (piece) => {
      const cpuMs = (unit: string): number => {
        // Parsed, so that the texts are flat as a request's are.
        const said: unknown = JSON.parse(JSON.stringify(parts(unit).map((part) => `\u0101${part}`)));
        return Math.min(...[1, 2, 3].map(() => cpuMsOf(() => maskEcho(prompt, { content: said }))));
      };
      // Twenty times as long with a search for each blank. What takes little is no harm, whatever the ratio.
      expect(cpuMs(piece)).toBeLessThan(Math.max(5 * cpuMs('x'), 40));
    },
  );

  test('is looked for once for all texts, short ones among them', () => {
    const request = { messages: [{ content: prompt }] };
    expect(
      maskEchoes([`Refused: ${prompt}!`, 'code', `${prompt} ${prompt}`, 'x'.repeat(40)], request),
    ).toEqual(['Refused: [input]!', 'code', '[input] [input]', 'x'.repeat(40)]);
    expect(maskEchoes(['a', ''], request)).toEqual(['a', '']);
  });

  test('in a request whose white space is too much to look through masks the whole text', () => {
    const messages = Array.from({ length: 20 }, () => ({ content: 'a\n'.repeat(500_000) }));
    expect(maskEcho('The context is longer than this model can take.', { messages })).toBe('[input]');
  });

  test('that cannot be looked for at that cost masks the whole text', () => {
    const text = `${prompt} ${`${'a'.repeat(31)}b`.repeat(9)}`;
    expect(maskEcho(text, { content: filled('a') })).toBe('[input]');
  });

  test('is found whatever white space the request has in its place', () => {
    const spaces = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter((c) =>
      /\s/.test(c),
    );
    for (const space of spaces) {
      expect(maskEcho(`Refused: ${prompt}!`, { content: prompt.replaceAll(' ', space + space) })).toBe(
        'Refused: [input]!',
      );
    }
  });
});
