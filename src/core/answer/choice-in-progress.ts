import type { ByteBuffer } from '../byte-buffer.ts';
import type { AnswerMessage, Choice, ToolCall } from './chat-completion.ts';

interface ToolCallInProgress {
  id: string;
  name: string;
  readonly arguments: ByteBuffer;
}

export interface ChoiceInProgress {
  /** Text fields by name, in the order seen. A field that only ever was null stays null. */
  readonly text: Map<string, ByteBuffer>;
  readonly toolCalls: Map<number, ToolCallInProgress>;
  finishReason: string | null;
}

/** The choice as a whole answer holds it; null when it was cut. */
export function finishedChoice(index: number, choice: ChoiceInProgress): Choice | null {
  if (choice.finishReason === null) return null;
  const toolCalls: ToolCall[] = [];
  for (const [, call] of [...choice.toolCalls].sort(([a], [b]) => a - b)) {
    if (call.id === '' || call.name === '') return null;
    toolCalls.push({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments.readUtf16() },
    });
  }
  const texts = [...choice.text].map(([field, text]) => [field, text.readUtf16()] as const);
  const { content, ...otherText } = Object.fromEntries(texts);
  const message: AnswerMessage = {
    role: 'assistant',
    content: content ?? null,
    ...otherText,
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
  return { index, message, finish_reason: choice.finishReason };
}
