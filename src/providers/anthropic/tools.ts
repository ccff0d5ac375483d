import type { ChatRequest } from '../../core/chat-request.ts';
import type { ModelFacts } from '../../core/model-facts.ts';
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

function translateChoice(choice: ChatRequest['tool_choice'], facts: ModelFacts): JsonRecord | null {
  if (choice === undefined || choice === 'auto') return choice === undefined ? null : { type: 'auto' };
  if (choice === 'none') return { type: 'none' };
  if (!facts.forced_tool) return { type: 'auto' };
  if (choice === 'required') return { type: 'any' };
  const named = isRecord(choice) && isRecord(choice['function']) ? choice['function']['name'] : undefined;
  return typeof named === 'string' ? { type: 'tool', name: named } : { type: 'auto' };
}

function isForced(choice: ChatRequest['tool_choice']): boolean {
  return choice !== undefined && choice !== 'auto' && choice !== 'none';
}

/** Tools, the choice among them and whether calls may be parallel, in Anthropic's words. */
export function translateTools(request: ChatRequest, facts: ModelFacts, dropped: string[]): ToolFields {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = request;
  if (tools === undefined || tools.length === 0) {
    for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) {
      if (request[field] !== undefined) dropped.push(field);
    }
    return {};
  }
  if (isForced(choice) && !facts.forced_tool) dropped.push('tool_choice');
  let translated = translateChoice(choice, facts);
  if (parallel === false && translated?.['type'] !== 'none') {
    translated = { ...(translated ?? { type: 'auto' }), disable_parallel_tool_use: true };
  }
  return { tools: tools.map(translateTool), ...(translated !== null && { tool_choice: translated }) };
}
