const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/**
 * OpenAI's finish reason for Anthropic's stop reason; `stop` for values that are added later (Claude docs: Handling
 * stop reasons).
 */
export function finishReasonOf(stopReason: unknown): string {
  return typeof stopReason === 'string' && Object.hasOwn(finishReasons, stopReason)
    ? (finishReasons[stopReason] ?? 'stop')
    : 'stop';
}
