import { maxNameLength } from '../answer-limits.ts';

/**
 * The finish reason a client of the OpenAI format knows. Together ends with `eos`, and some servers give none or one
 * that is no text: all of that is `stop`. Several say `stop` after tool calls. Other texts pass: vendors add some.
 * Null: longer than any name. It is kept until the stream ends, for each of its choices.
 */
export function finishReason(given: unknown, calledTools: boolean): string | null {
  if (typeof given === 'string' && given.length > maxNameLength) return null;
  const reason = typeof given === 'string' && given !== '' && given !== 'eos' ? given : 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}
