import type { ChatRequest } from '../request/chat-request.ts';
import type { Usage } from './usage.ts';

/** What English takes; of other scripts a character is more often a token of its own. */
const charactersPerToken = 4;
/** Vendors send about one token in an event, of 150 to 350 bytes with all that is around it. */
const bytesPerToken = 250;

/** What an answer that was cut was made of, as far as it was seen here. */
export interface CutAnswer {
  readonly promptCharacters: number;
  /** That had come of its stream. */
  readonly answerBytes: number;
}

/**
 * What a cut answer may have used up, where the vendor had not stated it: for limits, which would else not hold for
 * clients that leave before the last chunk. Rows, costs and statistics have what was stated and nothing else.
 */
export function estimatedUsage(stated: Usage, { promptCharacters, answerBytes }: CutAnswer): Usage {
  return {
    ...stated,
    basis: 'partial',
    inputTokens: Math.max(stated.inputTokens, Math.ceil(promptCharacters / charactersPerToken)),
    outputTokens: Math.max(stated.outputTokens, Math.ceil(answerBytes / bytesPerToken)),
  };
}

/** Characters of all texts that the messages consist of. */
export function promptCharacters({ messages }: ChatRequest): number {
  let characters = 0;
  for (const { content } of messages) {
    if (typeof content === 'string') characters += content.length;
    else if (Array.isArray(content)) {
      for (const { text } of content) if (typeof text === 'string') characters += text.length;
    }
  }
  return characters;
}
