import type { JsonRecord } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import { toolCallId } from '../tool-call-id.ts';

interface OpenBlock {
  /** Position among the tool calls, from 0; the vendor's index counts text and thinking too. */
  readonly index: number;
  /** Input given whole at the start, sent only if no pieces follow. */
  readonly wholeInput: JsonRecord;
  hasArguments: boolean;
}

/** The tool_use blocks of one streamed message, as fragments of OpenAI tool calls. */
export class ToolBlocks {
  readonly #seed: string;
  readonly #open = new Map<unknown, OpenBlock>();
  #count = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  get count(): number {
    return this.#count;
  }

  /** The first fragment: id, type and name, once. */
  start(blockIndex: unknown, block: JsonRecord): JsonRecord {
    const index = this.#count;
    this.#count += 1;
    const input = block['input'];
    this.#open.set(blockIndex, { index, wholeInput: isRecord(input) ? input : {}, hasArguments: false });
    return {
      index,
      id: textOf(block['id']) || toolCallId(this.#seed, 0, index),
      type: 'function',
      function: { name: textOf(block['name']), arguments: '' },
    };
  }

  /** A piece of arguments; null when there is nothing to send. */
  append(blockIndex: unknown, piece: string): JsonRecord | null {
    const open = this.#open.get(blockIndex);
    if (open === undefined || piece === '') return null;
    if (piece.trim() !== '') open.hasArguments = true;
    return { index: open.index, function: { arguments: piece } };
  }

  /** A tool without arguments streams only '': its client must still end with `{}`. */
  stop(blockIndex: unknown): JsonRecord | null {
    const open = this.#open.get(blockIndex);
    if (open === undefined) return null;
    this.#open.delete(blockIndex);
    if (open.hasArguments) return null;
    return { index: open.index, function: { arguments: JSON.stringify(open.wholeInput) } };
  }

  /** What calls without a stop event still lack. */
  finish(): JsonRecord[] {
    return [...this.#open.keys()].map((key) => this.stop(key)).filter((call) => call !== null);
  }
}
