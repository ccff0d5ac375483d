import { isForced } from '../../core/capability.ts';
import type { ChatRequest } from '../../core/chat-request.ts';
import type { JsonRecord } from '../json-value.ts';
import { isRecord } from '../json-value.ts';

export interface ToolFields {
  readonly tools?: readonly JsonRecord[];
  readonly tool_choice?: JsonRecord;
}

function inputSchema(parameters: unknown): JsonRecord {
  if (!isRecord(parameters)) return { type: 'object', properties: {} };
  return parameters['type'] === undefined ? { type: 'object', ...parameters } : parameters;
}

/** A tool that is no function is the vendor's own kind and goes as it is. */
function translateTool(tool: JsonRecord): JsonRecord {
  const given = tool['function'];
  if (!isRecord(given)) return tool;
  return {
    name: given['name'],
    ...(typeof given['description'] === 'string' && { description: given['description'] }),
    input_schema: inputSchema(given['parameters']),
    ...(isRecord(tool['cache_control']) && { cache_control: tool['cache_control'] }),
  };
}

/** Choices of other kinds, and forced ones where the model takes none, are planned past this vendor. */
function translateChoice(choice: ChatRequest['tool_choice']): JsonRecord | null {
  if (choice === undefined) return null;
  if (choice === 'auto' || choice === 'none') return { type: choice };
  if (choice === 'required') return { type: 'any' };
  const named = isRecord(choice) && isRecord(choice['function']) ? choice['function']['name'] : undefined;
  return { type: 'tool', name: named };
}

/** What says nothing where there are no tools. */
const emptyFields = ['tools', 'parallel_tool_calls'] as const;

/** Tools, the choice among them and whether calls may be parallel, in Anthropic's words. */
export function translateTools(request: ChatRequest, dropped: string[]): ToolFields {
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
    if (isRecord(tool['function']) && tool['function']['strict'] === true) {
      dropped.push('tools[].function.strict');
      break;
    }
  }
  if (parallel === false && translated?.['type'] !== 'none') {
    translated = { ...(translated ?? { type: 'auto' }), disable_parallel_tool_use: true };
  }
  return { tools: tools.map(translateTool), ...(translated !== null && { tool_choice: translated }) };
}
