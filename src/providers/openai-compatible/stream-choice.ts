import { textFields } from '../../core/answer/completion-accumulator.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import { callsAreWhole } from '../whole-calls.ts';
import { properContent } from './choice.ts';
import { finishReason } from './finish-reason.ts';
import { ToolFragments } from './tool-fragments.ts';
import type { ToolRoom } from './tool-room.ts';
import type { WireChoice, WireMessage } from './wire.ts';

/** What one choice of one chunk means for the stream. */
export interface ChoiceEffect {
  /** The choice must be written anew, since something of it was put into form. */
  readonly changed: boolean;
  /** Content, a tool call, reasoning, a refusal or a finish reason. */
  readonly token: boolean;
  /** Tool-call fragments that have to go out before this chunk. */
  readonly owed: readonly JsonRecord[];
}

const objectFields = ['audio', 'function_call'] as const;

const noCalls: readonly JsonRecord[] = [];

type ToolsEnd = Pick<ChoiceEffect, 'changed' | 'owed'>;
const nothingOwed: ToolsEnd = { changed: false, owed: noCalls };

function carriesToken(delta: Untrusted<WireMessage>): boolean {
  for (const field of textFields) {
    const value = delta[field];
    if (typeof value === 'string' ? value !== '' : Array.isArray(value) && value.length > 0) return true;
  }
  return objectFields.some((field) => isRecord(delta[field]));
}

/** The state of one choice of a streamed answer, and the form its deltas are brought into. */
export class StreamChoice {
  readonly index: number;
  readonly #tools: ToolFragments;
  #roleSent = false;
  #saidSomething = false;
  /** The reason as sent to the client; null until the choice has ended. */
  finishReason: string | null = null;

  /** `room` is that of the whole stream. */
  constructor(index: number, seed: string, room: ToolRoom) {
    this.index = index;
    this.#tools = new ToolFragments(seed, index, room);
  }

  /**
   * Reads one choice of a chunk and puts it into form, in place: role once and first, tool fragments as the
   * SDKs need them, content as text, a known finish reason. Null when it breaks a bound, when its content or its calls
   * cannot be read, or when it ends for calls that never came.
   */
  take(choice: Untrusted<WireChoice>): ChoiceEffect | null {
    let changed = false;
    if (choice.index !== this.index) {
      choice.index = this.index;
      changed = true;
    }
    if (!isRecord(choice.delta)) {
      // A text, or a whole message in its place: taken for nothing, it would be lost while the answer looks whole.
      const isWhole = isRecord(choice.message) && !this.#saidSomething;
      if ((choice.delta ?? null) !== null || isWhole) return null;
      choice.delta = {};
      changed = true;
    }
    const delta = choice.delta as Untrusted<WireMessage>;
    for (const holder of [choice, delta]) {
      if (!Object.hasOwn(holder, 'gateway')) continue;
      delete holder.gateway;
      changed = true;
    }
    const { content } = delta;
    if (typeof content !== 'string' && content !== undefined && content !== null) {
      const text = properContent(content);
      if (text === undefined) return null;
      delta.content = text;
      changed = true;
    }
    const fragments = this.#takeTools(delta);
    if (fragments === null) return null;
    if (this.#takeRole(delta)) changed = true;
    const finish = this.#takeFinish(choice);
    if (finish === null) return null;
    const end = finish.finished ? this.#finishTools(delta) : nothingOwed;
    if (end === null || (choice.finish_reason === 'tool_calls' && this.#tools.count === 0)) {
      // It ended the stream, and not as it says.
      this.finishReason = null;
      return null;
    }
    this.#saidSomething ||= fragments.any || carriesToken(delta);
    return {
      changed: changed || fragments.changed || finish.changed || end.changed,
      token: this.#saidSomething || finish.finished,
      owed: end.owed,
    };
  }

  /** Null when a call never got its name. */
  #finishTools(delta: Untrusted<WireMessage>): ToolsEnd | null {
    const given = Array.isArray(delta.tool_calls) ? delta.tool_calls : noCalls;
    const end = this.#tools.finish(given, callsAreWhole(this.finishReason));
    if (end === null) return null;
    const changed = end.calls !== given;
    if (changed) delta.tool_calls = end.calls;
    return { changed, owed: end.owed };
  }

  #takeTools(delta: Untrusted<WireMessage>): { readonly changed: boolean; readonly any: boolean } | null {
    const given = delta.tool_calls;
    if (given === undefined || given === null) return { changed: false, any: false };
    if (!Array.isArray(given)) return null;
    const proper = this.#tools.take(given);
    if (proper === null) return null;
    if (proper.length === 0) delete delta.tool_calls;
    else delta.tool_calls = proper;
    return { changed: proper !== given || proper.length === 0, any: given.length > 0 };
  }

  /** Both SDKs need a role, and the Python one joins repeated ones: so it is sent once, first. */
  #takeRole(delta: Untrusted<WireMessage>): boolean {
    const first = !this.#roleSent;
    this.#roleSent = true;
    if (first) {
      if (delta.role === 'assistant') return false;
      delta.role = 'assistant';
      return true;
    }
    return Object.hasOwn(delta, 'role') && delete delta.role;
  }

  /** Null: a reason that is none. */
  #takeFinish(
    choice: Untrusted<WireChoice>,
  ): { readonly changed: boolean; readonly finished: boolean } | null {
    const given = choice.finish_reason;
    if (given === undefined || given === null) return { changed: false, finished: false };
    if (typeof given !== 'string' || given === '' || this.finishReason !== null) {
      choice.finish_reason = null;
      return { changed: true, finished: false };
    }
    const reason = finishReason(given, this.#tools.count > 0);
    if (reason === null) return null;
    this.finishReason = reason;
    choice.finish_reason = reason;
    return { changed: reason !== given, finished: true };
  }
}
