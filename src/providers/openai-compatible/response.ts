import { isAscii } from 'node:buffer';
import { answerBounds, maxChoices, maxToolCalls } from '../../core/answer/answer-limits.ts';
import type { ChatCompletion, WireUsage } from '../../core/answer/chat-completion.ts';
import { noWireUsage } from '../../core/answer/chat-completion.ts';
import { noUsage } from '../../core/answer/usage.ts';
import type { Tallied } from '../../core/json/json-tally.ts';
import { keptName, overfullAnswer } from '../answer-limits.ts';
import { isErrorValue } from '../error-body.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord, readJson, textOf } from '../json-value.ts';
import type { StreamContext, TranslatedAnswer, UnreadableAnswer } from '../provider.ts';
import { failedAnswer, incompleteAnswer, unreadableAnswer } from '../stream-failure.ts';
import { errorOfChoice, failedChoice, properChoice } from './choice.ts';
import { withoutForeignBlock } from './foreign-block.ts';
import { readUsage } from './usage.ts';
import type { WireChoice, WireCompletion, WireMessage } from './wire.ts';

/** A number such as `1e20` grows fivefold when it is written again, and nothing grows more. */
const maxGrowth = 5;
/** What we add by ourselves: names, ids and usage. */
const ownAdditionsBytes = 256 * 1024;

function sameUsage(given: unknown, wire: WireUsage): boolean {
  if (given === wire) return true;
  if (!isRecord(given)) return false;
  const keys = Object.keys(wire);
  return keys.length === Object.keys(given).length && keys.every((key) => given[key] === wire[key]);
}

function statesFinish(value: unknown): boolean {
  const choice: Untrusted<WireChoice> = isRecord(value) ? value : {};
  return textOf(choice.finish_reason) !== '';
}

/** True when two choices have one index: clients tell choices apart by nothing else. */
function repeatsIndex(choices: readonly Untrusted<WireChoice>[]): boolean {
  if (choices.length === 1) return false;
  return new Set(choices.map(({ index }) => index)).size < choices.length;
}

/** Tool calls of all choices together. */
function countCalls(choices: readonly unknown[]): number {
  let count = 0;
  for (const value of choices) {
    const choice: Untrusted<WireChoice> = isRecord(value) ? value : {};
    const message: Untrusted<WireMessage> = isRecord(choice.message) ? choice.message : {};
    if (Array.isArray(message.tool_calls)) count += message.tool_calls.length;
  }
  return count;
}

/** The proper form of the answer; the same object when it has that form already. */
function properAnswer(
  given: Untrusted<WireCompletion>,
  choices: readonly unknown[],
  usage: WireUsage,
  context: StreamContext,
): Untrusted<WireCompletion> {
  const { id, created, model } = given;
  const own = withoutForeignBlock(given);
  const proper =
    own === given &&
    keptName(id) !== '' &&
    given.object === 'chat.completion' &&
    Number.isSafeInteger(created) &&
    keptName(model) !== '' &&
    choices === given.choices &&
    sameUsage(given.usage, usage);
  if (proper) return given;
  return {
    ...own,
    id: keptName(id) || context.fallbackId,
    object: 'chat.completion',
    created: Number.isSafeInteger(created) ? created : context.createdSeconds,
    model: keptName(model) || context.model,
    choices,
    usage,
  };
}

/**
 * Reads a 200 of OpenAI shape. An answer in proper form keeps its own text, byte for byte; others are put into
 * form (SPEC 2.3). Not JSON, an error object, no choices, or two of one index: unreadable; no finish reason:
 * incomplete.
 */
export function translateCompatibleAnswer(
  body: Buffer,
  context: StreamContext,
  tally?: Tallied,
): TranslatedAnswer | UnreadableAnswer {
  const read = readJson(body, answerBounds, tally);
  if (read === null) return unreadableAnswer(overfullAnswer);
  const { text, value } = read;
  if (value === undefined) return unreadableAnswer('the answer is not JSON');
  if (!isRecord(value)) return unreadableAnswer('the answer is not an object');
  const given: Untrusted<WireCompletion> = value;
  const reported = readUsage(given.usage);
  const stated = reported?.usage ?? null;
  if (isErrorValue(value)) return failedAnswer(given, stated);
  const givenChoices = given.choices;
  if (!Array.isArray(givenChoices) || givenChoices.length === 0) {
    return unreadableAnswer('the answer holds no choices', stated);
  }
  if (givenChoices.length > maxChoices || countCalls(givenChoices) > maxToolCalls) {
    return unreadableAnswer(overfullAnswer, stated);
  }
  const failed = failedChoice(givenChoices);
  if (failed !== null) return failedAnswer(errorOfChoice(failed), stated);
  const choices: Untrusted<WireChoice>[] = [];
  for (const [position, choice] of givenChoices.entries()) {
    const proper = properChoice(choice, position, context);
    if (proper === null)
      return unreadableAnswer('a choice of the answer holds no message that can be read', stated);
    choices.push(proper);
  }
  if (repeatsIndex(choices)) return unreadableAnswer('two choices of the answer have the same index', stated);
  if (!givenChoices.every(statesFinish)) return incompleteAnswer(stated);
  const changed = choices.some((choice, position) => choice !== givenChoices[position]);
  const answer = properAnswer(
    given,
    changed ? choices : givenChoices,
    reported?.wire ?? noWireUsage,
    context,
  );
  const json = answer === given ? text : JSON.stringify(answer);
  if (json.length > maxGrowth * body.length + ownAdditionsBytes)
    return unreadableAnswer(overfullAnswer, stated);
  return {
    kind: 'answer',
    json,
    bytes: json === text && isAscii(body) ? json.length : Buffer.byteLength(json),
    completion: answer as unknown as ChatCompletion,
    usage: stated ?? noUsage,
  };
}
