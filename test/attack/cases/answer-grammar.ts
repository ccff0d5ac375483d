import type { Random } from '../../harness/measure/random.ts';
import { anyValue, countOf, field, list, object, oddNumber, oddText } from './hostile-json.ts';

/** Whole answers and single events of both wire forms, as the grammar of hostile-json.ts bends them. */

const most = 100_000;
const quoted = (text: string): string => JSON.stringify(text);

export interface Bent {
  /** The chance of each field to be odd. */
  readonly oddity: number;
}

function usage(random: Random, { oddity }: Bent): string {
  const count = (): string => (random.chance(0.2) ? oddNumber(random) : String(random.int(0, 999)));
  return object(
    field(random, 'prompt_tokens', count, oddity),
    field(random, 'completion_tokens', count, oddity),
    field(random, 'total_tokens', count, oddity),
    random.chance(0.3)
      ? field(random, 'prompt_tokens_details', () => object([`"cached_tokens":${count()}`]), oddity)
      : [],
  );
}

function toolCall(random: Random, { oddity }: Bent, index: number | null): string {
  const call = () =>
    object(
      field(random, 'name', () => quoted(oddText(random)), oddity),
      field(random, 'arguments', () => quoted(random.chance(0.7) ? '{"a":1}' : oddText(random)), oddity),
    );
  return object(
    index === null ? [] : field(random, 'index', () => String(index), oddity),
    field(random, 'id', () => quoted(`call_${random.int(0, 9)}`), oddity),
    field(random, 'type', () => '"function"', oddity),
    field(random, 'function', call, oddity),
  );
}

const finish = (random: Random): string =>
  random.pick([
    '"stop"',
    '"length"',
    '"tool_calls"',
    '"content_filter"',
    'null',
    '"function_call"',
    '"?"',
    '""',
  ]);

function message(random: Random, bent: Bent): string {
  const { oddity } = bent;
  const calls = () => list(countOf(random, most), () => toolCall(random, bent, null));
  return object(
    field(random, 'role', () => '"assistant"', oddity),
    field(random, 'content', () => quoted(oddText(random)), oddity),
    random.chance(0.35) ? field(random, 'tool_calls', calls, oddity) : [],
    random.chance(0.1) ? field(random, 'refusal', () => quoted(oddText(random)), oddity) : [],
  );
}

export function openAiBody(random: Random, bent: Bent): string {
  const { oddity } = bent;
  const choice = () =>
    object(
      field(random, 'index', () => String(random.int(0, 3)), oddity),
      field(random, 'message', () => message(random, bent), oddity),
      field(random, 'finish_reason', () => finish(random), oddity),
      random.chance(0.1) ? field(random, 'logprobs', () => anyValue(random, 3), oddity) : [],
    );
  const choices = () => list(random.chance(0.7) ? 1 : countOf(random, most), choice);
  return object(
    field(random, 'id', () => '"chatcmpl-1"', oddity),
    field(random, 'object', () => '"chat.completion"', oddity),
    field(random, 'created', () => '1790000000', oddity),
    field(random, 'model', () => '"gpt-test"', oddity),
    field(random, 'choices', choices, oddity),
    field(random, 'usage', () => usage(random, bent), oddity),
    random.chance(0.1) ? [`${quoted(oddText(random))}:${anyValue(random, 4)}`] : [],
  );
}

export function openAiEvent(random: Random, bent: Bent): string {
  const { oddity } = bent;
  const calls = () =>
    list(random.chance(0.8) ? 1 : countOf(random, 5_000), () => toolCall(random, bent, random.int(0, 3)));
  const delta = () =>
    object(
      random.chance(0.2) ? field(random, 'role', () => '"assistant"', oddity) : [],
      random.chance(0.8) ? field(random, 'content', () => quoted(oddText(random)), oddity) : [],
      random.chance(0.2) ? field(random, 'tool_calls', calls, oddity) : [],
    );
  const choice = () =>
    object(
      field(
        random,
        'index',
        () =>
          String(
            random.weighted([
              [9, 0],
              [1, random.int(0, 200_000)],
            ]),
          ),
        oddity,
      ),
      field(random, 'delta', delta, oddity),
      field(random, 'finish_reason', () => (random.chance(0.9) ? 'null' : finish(random)), oddity),
    );
  return object(
    field(random, 'id', () => '"chatcmpl-1"', oddity),
    field(random, 'object', () => '"chat.completion.chunk"', oddity),
    field(random, 'created', () => '1790000000', oddity),
    field(random, 'model', () => '"gpt-test"', oddity),
    field(random, 'choices', () => list(random.chance(0.85) ? 1 : countOf(random, 5_000), choice), oddity),
    random.chance(0.1) ? field(random, 'usage', () => usage(random, bent), oddity) : [],
  );
}

const anthropicUsage = (random: Random, oddity: number): string =>
  object(
    field(random, 'input_tokens', () => '11', oddity),
    field(random, 'output_tokens', () => (random.chance(0.8) ? '7' : oddNumber(random)), oddity),
  );

const stopReason = (random: Random): string =>
  random.pick(['"end_turn"', '"max_tokens"', '"tool_use"', '"refusal"', '"pause_turn"', 'null', '"?"']);

function block(random: Random, { oddity }: Bent): string {
  if (random.chance(0.7)) {
    return object(
      field(random, 'type', () => '"text"', oddity),
      field(random, 'text', () => quoted(oddText(random)), oddity),
    );
  }
  return object(
    field(random, 'type', () => '"tool_use"', oddity),
    field(random, 'id', () => '"toolu_1"', oddity),
    field(random, 'name', () => '"f"', oddity),
    field(random, 'input', () => anyValue(random, 4), oddity),
  );
}

export function anthropicBody(random: Random, bent: Bent): string {
  const { oddity } = bent;
  return object(
    field(random, 'id', () => '"msg_1"', oddity),
    field(random, 'type', () => '"message"', oddity),
    field(random, 'role', () => '"assistant"', oddity),
    field(random, 'model', () => '"claude-test"', oddity),
    field(
      random,
      'content',
      () => list(random.chance(0.7) ? 1 : countOf(random, most), () => block(random, bent)),
      oddity,
    ),
    field(random, 'stop_reason', () => stopReason(random), oddity),
    field(random, 'usage', () => anthropicUsage(random, oddity), oddity),
  );
}

/** One event of a Messages stream, with its `event:` line: in no order that makes sense. */
export function anthropicEvent(random: Random, bent: Bent): string {
  const { oddity } = bent;
  const index = field(random, 'index', () => String(random.int(0, 2)), oddity);
  const text = () =>
    object(
      ['"type":"text_delta"'],
      field(random, 'text', () => quoted(oddText(random)), oddity),
    );
  const json = () =>
    object(
      ['"type":"input_json_delta"'],
      field(random, 'partial_json', () => quoted(oddText(random)), oddity),
    );
  const [name, fields] = random.weighted<() => readonly [string, readonly string[]]>([
    [
      6,
      () => [
        'content_block_delta',
        [...index, ...field(random, 'delta', random.chance(0.7) ? text : json, oddity)],
      ],
    ],
    [
      2,
      () => [
        'content_block_start',
        [...index, ...field(random, 'content_block', () => block(random, bent), oddity)],
      ],
    ],
    [1, () => ['content_block_stop', index]],
    [1, () => ['ping', []]],
    [1, () => ['message_start', field(random, 'message', () => anthropicBody(random, bent), oddity)]],
    [
      1,
      () => [
        'message_delta',
        [`"delta":{"stop_reason":${stopReason(random)}}`, `"usage":${anthropicUsage(random, oddity)}`],
      ],
    ],
    [0.3, () => ['error', field(random, 'error', () => '{"type":"overloaded_error","message":"x"}', oddity)]],
    [0.3, () => [oddText(random).replaceAll(/[\r\n]/g, ''), []]],
  ])();
  return `event: ${name}\ndata: {"type":${quoted(name)}${fields.map((one) => `,${one}`).join('')}}\n\n`;
}
