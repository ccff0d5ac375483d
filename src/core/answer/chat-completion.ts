/** The OpenAI answer shapes, as loose as the vendors are: only the fields that we use are named. */

export interface WireUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly [detail: string]: unknown;
}

/** Where no usage is known. */
export const noWireUsage: WireUsage = Object.freeze({
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
});

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  readonly [extra: string]: unknown;
}

export interface AnswerMessage {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly [extra: string]: unknown;
}

export interface Choice {
  readonly index: number;
  readonly message: AnswerMessage;
  readonly finish_reason: string;
  readonly [extra: string]: unknown;
}

/** SPEC 2.3 without the `gateway` block. */
export interface ChatCompletion {
  readonly id: string;
  readonly object: 'chat.completion';
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly Choice[];
  readonly usage: WireUsage;
  readonly [extra: string]: unknown;
}

function isSaid(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== '';
}

/** False when a choice is empty: no text, tool call, reasoning, refusal or anything else but its role. */
export function saysSomething({ choices }: ChatCompletion): boolean {
  return choices.every(({ message }) =>
    Object.entries(message).some(([name, value]) => name !== 'role' && isSaid(value)),
  );
}
