import type { ChatRequest } from '../../core/request/chat-request.ts';
import { isForced } from '../../core/request/request-needs.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import type { MessagesRequest, Tool, ToolChoice } from './wire.ts';

/** A tool, and a choice of one, as clients write them (OpenAI API reference: Chat Completions, read 2026-11-20). */
interface ClientTool {
  function: ClientFunction;
  /** Anthropic's own caching hint. */
  cache_control: object;
}

interface ClientFunction {
  name: string;
  description: string;
  parameters: object;
  strict: boolean;
}

function functionOf(given: unknown): Untrusted<ClientFunction> | null {
  const tool: Untrusted<ClientTool> = isRecord(given) ? given : {};
  return isRecord(tool.function) ? tool.function : null;
}

function inputSchema(parameters: unknown): JsonRecord {
  if (!isRecord(parameters)) return { type: 'object', properties: {} };
  const { type } = parameters;
  return type === undefined ? { type: 'object', ...parameters } : parameters;
}

/** A tool that is no function is the vendor's own kind and goes as it is. */
function translateTool(tool: JsonRecord): Tool | JsonRecord {
  const given = functionOf(tool);
  if (given === null) return tool;
  const { cache_control: hint }: Untrusted<ClientTool> = tool;
  return {
    name: given.name,
    ...(typeof given.description === 'string' && { description: given.description }),
    input_schema: inputSchema(given.parameters),
    ...(isRecord(hint) && { cache_control: hint }),
  };
}

/** Choices of other kinds, and forced ones where the model takes none, are planned past this vendor. */
function translateChoice(choice: ChatRequest['tool_choice']): ToolChoice | null {
  if (choice === undefined) return null;
  if (choice === 'auto' || choice === 'none') return { type: choice };
  if (choice === 'required') return { type: 'any' };
  return { type: 'tool', name: functionOf(choice)?.name };
}

/** What says nothing where there are no tools. */
const emptyFields = ['tools', 'parallel_tool_calls'] as const;

/** Tools, the choice among them and whether calls may be parallel, in Anthropic's words. */
export function translateTools(
  request: ChatRequest,
  dropped: string[],
): Pick<MessagesRequest, 'tools' | 'tool_choice'> {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = request;
  let translated = translateChoice(choice);
  if (tools === undefined || tools.length === 0) {
    const forced = isForced(choice);
    for (const field of forced ? emptyFields : [...emptyFields, 'tool_choice']) {
      if (request[field] !== undefined) dropped.push(field);
    }
    // The vendor may say that there is nothing to call.
    return forced && translated !== null ? { tool_choice: translated } : {};
  }
  for (const tool of tools) {
    if (functionOf(tool)?.strict === true) {
      dropped.push('tools[].function.strict');
      break;
    }
  }
  if (parallel === false && translated?.type !== 'none') {
    translated = { ...(translated ?? { type: 'auto' }), disable_parallel_tool_use: true };
  }
  return { tools: tools.map(translateTool), ...(translated !== null && { tool_choice: translated }) };
}
