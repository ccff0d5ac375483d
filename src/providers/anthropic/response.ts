import { answerBounds, maxToolCalls } from '../../core/answer/answer-limits.ts';
import type { AnswerMessage, ChatCompletion, ToolCall } from '../../core/answer/chat-completion.ts';
import { noWireUsage } from '../../core/answer/chat-completion.ts';
import { jsonAnswer } from '../../core/answer/json-answer.ts';
import type { Tallied } from '../../core/json/json-tally.ts';
import { keptName, overfullAnswer } from '../answer-limits.ts';
import { isErrorValue } from '../error-body.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord, mayBeText, readJson, textOf } from '../json-value.ts';
import type { StreamContext, TranslatedAnswer, UnreadableAnswer } from '../provider.ts';
import { failedAnswer, incompleteAnswer, unreadableAnswer } from '../stream-failure.ts';
import { toolCallId } from '../tool-call-id.ts';
import { callsAreWhole } from '../whole-calls.ts';
import { endsForNoCalls, finishReasonOf } from './stop-reason.ts';
import { emptyInput, isCall } from './tool-blocks.ts';
import { UsageReader } from './usage.ts';
import type { AnswerBlock, Message } from './wire.ts';

/** Texts, thoughts and calls of one answer: each call has at most one of the others beside it. */
const maxBlocks = 3 * maxToolCalls;

function isReadableText(block: Untrusted<AnswerBlock>): boolean {
  const { type } = block;
  return (type !== 'text' && type !== 'thinking') || mayBeText(block[type]);
}

/** Why no answer is made of the blocks; null: one is. */
function flawOf(blocks: readonly Untrusted<AnswerBlock>[], finishReason: string): string | null {
  if (blocks.length > maxBlocks) return overfullAnswer;
  if (!blocks.every(isReadableText)) return 'a text of the answer is none';
  const calls = blocks.filter((block) => block.type === 'tool_use');
  if (!calls.every(isCall)) return 'a call of the answer is none';
  return endsForNoCalls(finishReason, calls.length)
    ? 'the answer ends for calls that it does not hold'
    : null;
}

function joined(blocks: readonly Untrusted<AnswerBlock>[], type: 'text' | 'thinking'): string {
  return blocks
    .filter((block) => block.type === type)
    .map((block) => textOf(block[type]))
    .join('');
}

/** Of a call that was cut before its arguments the vendor gives an empty input as well. */
function argumentsOf({ input }: Untrusted<AnswerBlock>, mayBeCut: boolean): string {
  const text = JSON.stringify(input ?? {});
  return mayBeCut && text === emptyInput ? '' : text;
}

function toolCalls(blocks: readonly Untrusted<AnswerBlock>[], stopReason: string, seed: string): ToolCall[] {
  // Only what comes last can have been cut.
  const cut = callsAreWhole(stopReason) ? undefined : blocks.at(-1);
  return blocks
    .filter((block) => block.type === 'tool_use')
    .map((block, index) => ({
      id: textOf(block.id) || toolCallId(seed, 0, index),
      type: 'function',
      function: { name: textOf(block.name), arguments: argumentsOf(block, block === cut) },
    }));
}

function messageOf(
  blocks: readonly Untrusted<AnswerBlock>[],
  stopReason: string,
  seed: string,
): AnswerMessage {
  const text = joined(blocks, 'text');
  const thinking = joined(blocks, 'thinking');
  const calls = toolCalls(blocks, stopReason, seed);
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(thinking !== '' && { reasoning_content: thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/**
 * Reads a 200 of the Messages API. Blocks of unknown type are skipped; an empty answer is an answer, one
 * without a stop reason is incomplete.
 */
export function translateAnthropicAnswer(
  body: Buffer,
  context: StreamContext,
  tally?: Tallied,
): TranslatedAnswer | UnreadableAnswer {
  const read = readJson(body, answerBounds, tally);
  if (read === null) return unreadableAnswer(overfullAnswer);
  const { value } = read;
  if (value === undefined) return unreadableAnswer('the answer is not JSON');
  if (!isRecord(value)) return unreadableAnswer('the answer is not an object');
  if (isErrorValue(value)) return failedAnswer(value, null);
  const given: Untrusted<Message> = value;
  const reader = new UsageReader();
  reader.take(given.usage);
  if (!Array.isArray(given.content)) {
    return unreadableAnswer('the answer holds no content', reader.usage(false));
  }
  const stopReason = textOf(given.stop_reason);
  if (stopReason === '') return incompleteAnswer(reader.usage(false));
  const finishReason = finishReasonOf(stopReason);
  if (finishReason === null) return unreadableAnswer(overfullAnswer, reader.usage(false));
  const blocks = given.content.filter(isRecord);
  const flaw = flawOf(blocks, finishReason);
  if (flaw !== null) return unreadableAnswer(flaw, reader.usage(false));
  const completion: ChatCompletion = {
    id: keptName(given.id) || context.fallbackId,
    object: 'chat.completion',
    created: context.createdSeconds,
    model: keptName(given.model) || context.model,
    choices: [
      {
        index: 0,
        message: messageOf(blocks, stopReason, context.fallbackId),
        finish_reason: finishReason,
      },
    ],
    usage: reader.wire ?? noWireUsage,
  };
  return { kind: 'answer', ...jsonAnswer(completion), completion, usage: reader.usage(true) };
}
