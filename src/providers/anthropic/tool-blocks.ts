import { maxToolCalls } from '../../core/answer/answer-limits.ts';
import { mayBeObject } from '../../core/request/tool-arguments.ts';
import { characterBytes, keptName } from '../answer-limits.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import { toolCallId } from '../tool-call-id.ts';
import type { AnswerBlock } from './wire.ts';

/** Characters of whole inputs that wait for the end of their blocks, all together. */
const maxHeldLength = 1024 * 1024;

/** What an open block takes of the heap beside its input. */
const blockBytes = 150;

/** A call has a name, and an object for its input where it has any: of nothing else one is made up. */
export function isCall({ name, input }: Untrusted<AnswerBlock>): boolean {
  return textOf(name) !== '' && (input === undefined || input === null || isRecord(input));
}

/** What the vendor gives for input that comes in pieces, for none, and for one that was cut before it began. */
export const emptyInput = '{}';

interface OpenBlock {
  /** Position among the tool calls, from 0; the vendor's index counts text and thinking too. */
  readonly index: number;
  /** Input given whole at the start, sent only if no pieces follow. */
  readonly wholeInput: string;
  hasArguments: boolean;
}

/** Blocks without a number are one: a text of a megabyte in its place would be kept for as long as the block. */
function blockKey(index: unknown): number | null {
  return typeof index === 'number' ? index : null;
}

/** The tool_use blocks of one streamed message, as fragments of OpenAI tool calls. */
export class ToolBlocks {
  readonly #seed: string;
  readonly #open = new Map<number | null, OpenBlock>();
  /** Calls that stopped without any input: what comes next tells whether they have none or were cut. */
  #unfilled: number[] = [];
  #count = 0;
  #heldLength = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** Of heap, roughly. */
  get keptBytes(): number {
    return this.#open.size * blockBytes + this.#heldLength * characterBytes;
  }

  /** How many have begun. */
  get count(): number {
    return this.#count;
  }

  /** The first fragment: id, type and name, once. Null: it is no call, or a bound is broken. */
  start(blockIndex: unknown, block: Untrusted<AnswerBlock>): JsonRecord | null {
    if (!isCall(block)) return null;
    const index = this.#count;
    this.#count += 1;
    const input = block.input;
    const wholeInput = isRecord(input) ? JSON.stringify(input) : emptyInput;
    this.#heldLength += wholeInput.length;
    if (index >= maxToolCalls || this.#heldLength > maxHeldLength) return null;
    this.#open.set(blockKey(blockIndex), { index, wholeInput, hasArguments: false });
    return {
      index,
      id: keptName(block.id) || toolCallId(this.#seed, 0, index),
      type: 'function',
      function: { name: textOf(block.name), arguments: '' },
    };
  }

  /** A piece of arguments; null when there is nothing to send, undefined when they are to be no object. */
  append(blockIndex: unknown, piece: string): JsonRecord | null | undefined {
    const open = this.#open.get(blockKey(blockIndex));
    if (open === undefined || piece === '') return null;
    if (!open.hasArguments && piece.trim() !== '') {
      if (!mayBeObject(piece)) return undefined;
      open.hasArguments = true;
    }
    return { index: open.index, function: { arguments: piece } };
  }

  /** Input that was given whole, or null. */
  stop(blockIndex: unknown): JsonRecord | null {
    const key = blockKey(blockIndex);
    const open = this.#open.get(key);
    if (open === undefined) return null;
    this.#open.delete(key);
    this.#heldLength -= open.wholeInput.length;
    if (open.hasArguments) return null;
    if (open.wholeInput === emptyInput) {
      this.#unfilled.push(open.index);
      return null;
    }
    return { index: open.index, function: { arguments: open.wholeInput } };
  }

  /** A tool without arguments streams only '': once its call is known to be whole, its client must have `{}`. */
  fill(): JsonRecord[] {
    const calls = this.#unfilled.map((index) => ({ index, function: { arguments: emptyInput } }));
    this.#unfilled = [];
    return calls;
  }

  /** What calls still lack at the end of their message; of those that may have been cut none is filled. */
  finish(areWhole: boolean): JsonRecord[] {
    const given = [...this.#open.keys()].map((key) => this.stop(key)).filter((call) => call !== null);
    return areWhole ? [...given, ...this.fill()] : given;
  }
}
