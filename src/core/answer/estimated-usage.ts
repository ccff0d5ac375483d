import type { ChatRequest, ContentPart } from '../request/chat-request.ts';
import type { Usage } from './usage.ts';

/** What English takes; of other scripts a character is more often a token of its own. */
const charactersPerToken = 4;
/** Vendors send about one token in an event, of 150 to 350 bytes with all that is around it. */
const bytesPerToken = 250;

/** An image of middle size takes some thousand tokens, whether it is sent or only named. */
const mediumCharacters = 1000 * charactersPerToken;
/** Of a long recording or document as base64, this many for a character of its text. */
const codedPerCharacter = 100;

/** What an answer without final counts was made of, as far as it was seen here. */
export interface CutAnswer {
  readonly promptCharacters: number;
  /** That had come of it. */
  readonly answerBytes: number;
  /** Of its text, reasoning and calls, of a whole answer all of it: some vendors send a dozen tokens in an event. */
  readonly answerCharacters: number;
}

/**
 * What an answer may have used up, where the vendor had not stated it: for limits, which would else not hold for
 * clients that leave before the last chunk. Rows, costs and statistics have what was stated and nothing else.
 */
export function estimatedUsage(stated: Usage, cut: CutAnswer): Usage {
  const { promptCharacters, answerBytes, answerCharacters } = cut;
  const outputTokens = Math.max(answerBytes / bytesPerToken, answerCharacters / charactersPerToken);
  return {
    ...stated,
    basis: 'partial',
    inputTokens: Math.max(stated.inputTokens, Math.ceil(promptCharacters / charactersPerToken)),
    outputTokens: Math.max(stated.outputTokens, Math.ceil(outputTokens)),
  };
}

/**
 * Characters of all that a prompt consists of: the messages with their tool calls, the tools and the form of the
 * answer, which vendors count as input too. What is no text counts as a medium.
 */
export function promptCharacters({ messages, tools, response_format: format }: ChatRequest): number {
  let characters = charactersOf(tools) + charactersOf(format);
  for (const { content, role: _, ...others } of messages) {
    characters += charactersOf(others);
    if (typeof content === 'string') characters += content.length;
    else for (const part of content ?? []) characters += partCharacters(part);
  }
  return characters;
}

function partCharacters({ type, text, ...others }: ContentPart): number {
  const written = typeof text === 'string' ? text.length : 0;
  if (type === 'text') return written + charactersOf(others);
  return written + Math.max(mediumCharacters, Math.ceil(charactersOf(others) / codedPerCharacter));
}

/** Of the texts and names in any value of JSON. */
function charactersOf(root: unknown): number {
  const left = [root];
  let characters = 0;
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string') characters += value.length;
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) for (const name of Object.keys(value)) characters += name.length;
    for (const member of Object.values(value)) left.push(member);
  }
  return characters;
}
