import { maxCallIdLength, maxNameLength } from '../answer-limits.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord, textOf } from '../json-value.ts';
import { toolCallId } from '../tool-call-id.ts';
import type { ToolRoom } from './tool-room.ts';
import type { CalledFunction, WireToolCall } from './wire.ts';

type Fragment = Untrusted<WireToolCall>;
type Called = Untrusted<CalledFunction>;

/** A text that grew by pieces keeps each of them: 32 bytes beside its characters, of which each counts for two. */
const heldPieceOverhead = 16;

interface OpenCall {
  /** Position among the calls of this choice, from 0. */
  readonly index: number;
  readonly id: string;
  name: string;
  /** Arguments that came before the name. */
  held: string;
  /** What they take of the room. */
  heldRoom: number;
  hasArguments: boolean;
}

/** What is owed to the client when a choice ends. */
export interface CallsEnd {
  /** Has to go out before the chunk of the end. */
  readonly owed: readonly JsonRecord[];
  /** The fragments of that chunk; the same list where none lacked anything. */
  readonly calls: readonly unknown[];
}

/** The fragment with `{}` behind what white space it has. */
function withArguments(fragment: Fragment): Fragment {
  const called: Called = isRecord(fragment.function) ? fragment.function : {};
  return { ...fragment, function: { ...called, arguments: `${argumentsText(called.arguments)}{}` } };
}

function argumentsText(given: unknown): string {
  if (typeof given === 'string') return given;
  return given === undefined || given === null ? '' : JSON.stringify(given);
}

/**
 * Brings the tool-call fragments of one choice into the one form which the accumulators of both OpenAI SDKs
 * rebuild: dense indexes from 0, id, type and name once and first, then arguments in order, `{}` for none.
 * Servers start at index 1, leave index, type or id out, repeat the name as '' or send it late.
 */
export class ToolFragments {
  readonly #room: ToolRoom;
  readonly #seed: string;
  readonly #choiceIndex: number;
  readonly #calls: OpenCall[] = [];
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  /** Whose the fragment before is, in the list that is being taken. */
  #before: OpenCall | null = null;

  constructor(seed: string, choiceIndex: number, room: ToolRoom) {
    this.#room = room;
    this.#seed = seed;
    this.#choiceIndex = choiceIndex;
  }

  get count(): number {
    return this.#calls.length;
  }

  /** The proper forms of `fragments`: the same array when all had it, null when a bound is broken or one is no call. */
  take(fragments: readonly unknown[]): readonly unknown[] | null {
    const proper: unknown[] = [];
    this.#before = null;
    for (const fragment of fragments) {
      if (!isRecord(fragment)) return null;
      const next = this.#properFragment(fragment);
      if (next === undefined) return null;
      if (next !== null) proper.push(next);
    }
    const same = proper.length === fragments.length && proper.every((call, i) => call === fragments[i]);
    return same ? fragments : proper;
  }

  /**
   * What the calls still lack at their end, which are arguments where they have none and `areWhole`: what was cut stays
   * as it came. They are put into `last`, the proper fragments that came with the end, where these hold the call:
   * behind them it would be too late, and before them nobody knows of it. Null when a name never came.
   */
  finish(last: readonly unknown[], areWhole: boolean): CallsEnd | null {
    if (this.#calls.some(({ name }) => name === '')) return null;
    const lacking = areWhole ? this.#calls.filter(({ hasArguments }) => !hasArguments) : [];
    if (lacking.length === 0) return { owed: [], calls: last };
    const owed: JsonRecord[] = [];
    const calls = [...(last as readonly Fragment[])];
    // By the index of a call, where its last fragment stands: an event may hold twenty thousand.
    const places = new Map(calls.map(({ index }, at) => [index, at]));
    for (const call of lacking) {
      call.hasArguments = true;
      const at = places.get(call.index);
      if (at === undefined) owed.push({ index: call.index, function: { arguments: '{}' } });
      else calls[at] = withArguments(calls[at] as Fragment);
    }
    return { owed, calls: owed.length === lacking.length ? last : calls };
  }

  /** Null: nothing to send yet. Undefined: a bound is broken. */
  #properFragment(fragment: Fragment): Fragment | null | undefined {
    const called: Called = isRecord(fragment.function) ? fragment.function : {};
    const call = this.#find(fragment, textOf(called.name));
    if (call === null) return undefined;
    this.#before = call;
    if (isRecord(fragment.custom)) {
      call.hasArguments = true;
      call.name ||= 'custom';
      return call.index === fragment.index ? fragment : { ...fragment, index: call.index };
    }
    const piece = argumentsText(called.arguments);
    if (piece.trim() !== '') call.hasArguments = true;
    if (call.name !== '') return this.#continuation(call, fragment, called, piece);
    const name = textOf(called.name);
    if (name.length > maxNameLength || !this.#room.hold(name.length)) return undefined;
    call.name = name;
    if (name !== '') return this.#opening(call, fragment, called, this.#takeHeld(call) + piece);
    if (piece === '') return null;
    const room = piece.length + heldPieceOverhead;
    if (!this.#room.hold(room)) return undefined;
    call.held += piece;
    call.heldRoom += room;
    return null;
  }

  #takeHeld(call: OpenCall): string {
    const { held } = call;
    this.#room.hold(-call.heldRoom);
    call.held = '';
    call.heldRoom = 0;
    return held;
  }

  #opening(call: OpenCall, fragment: Fragment, called: Called, argumentsSoFar: string): Fragment {
    const same =
      fragment.index === call.index &&
      fragment.id === call.id &&
      fragment.type === 'function' &&
      called.arguments === argumentsSoFar;
    if (same) return fragment;
    return {
      ...fragment,
      index: call.index,
      id: call.id,
      type: 'function',
      function: { ...called, name: call.name, arguments: argumentsSoFar },
    };
  }

  #continuation(call: OpenCall, fragment: Fragment, called: Called, piece: string): Fragment {
    const same =
      fragment.index === call.index &&
      !Object.hasOwn(fragment, 'id') &&
      !Object.hasOwn(fragment, 'type') &&
      !Object.hasOwn(called, 'name') &&
      called.arguments === piece;
    if (same) return fragment;
    const { id: _id, type: _type, ...rest } = fragment;
    const { name: _name, ...calledRest } = called;
    return { ...rest, index: call.index, function: { ...calledRest, arguments: piece } };
  }

  #known(fragment: Fragment, id: string, name: string): OpenCall | undefined {
    const { index } = fragment;
    const named = id === '' ? undefined : this.#byId.get(id);
    const call =
      typeof index === 'number' ? this.#byIndex.get(index) : id === '' ? this.#calls.at(-1) : named;
    if (call === undefined || call.name === '' || name === '') return call;
    // Some servers give every call index 0, or none: a new id, or where there is none a new name, begins another one.
    // So does the same name in one list.
    const another = id === '' ? name !== call.name || call === this.#before : id !== call.id;
    return another ? named : call;
  }

  #find(fragment: Fragment, name: string): OpenCall | null {
    const id = textOf(fragment.id);
    const known = this.#known(fragment, id, name);
    if (known !== undefined) return known;
    const index = this.#calls.length;
    if (id.length > maxCallIdLength || !this.#room.addCall()) return null;
    const call: OpenCall = {
      index,
      id: id === '' ? toolCallId(this.#seed, this.#choiceIndex, index) : id,
      name: '',
      held: '',
      heldRoom: 0,
      hasArguments: false,
    };
    if (!this.#room.hold(call.id.length)) return null;
    this.#calls.push(call);
    this.#byId.set(call.id, call);
    if (typeof fragment.index === 'number') this.#byIndex.set(fragment.index, call);
    return call;
  }
}
