import { maxNameLength } from '../answer-limits.ts';

const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  // The vendor's own limit on the steps of its tools was reached: there would have been more.
  pause_turn: 'length',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/**
 * OpenAI's finish reason for Anthropic's stop reason (Claude docs: Handling stop reasons). Values that are added later
 * pass as they came: a `stop` made up for them would call an answer whole that may not be. Null: longer than any name.
 */
export function finishReasonOf(stopReason: string): string | null {
  if (stopReason.length > maxNameLength) return null;
  return Object.hasOwn(finishReasons, stopReason) ? (finishReasons[stopReason] ?? stopReason) : stopReason;
}

/**
 * True for an end for calls that never came, which is no end (docs/decisions/0005): the vendor does send them
 * (earendil-works/pi issue 9681). What its own servers run is no call.
 */
export function endsForNoCalls(finishReason: string, calls: number): boolean {
  return finishReason === 'tool_calls' && calls === 0;
}
