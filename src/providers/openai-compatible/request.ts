import type { ChatRequest } from '../../core/request/chat-request.ts';
import { isForced } from '../../core/request/request-needs.ts';
import { stopSequences } from '../../core/request/stop-sequences.ts';
import type { ModelFacts } from '../../core/tables/model-facts.ts';
import type { TranslationContext, UpstreamRequest } from '../provider.ts';
import type { Dialect } from './dialect.ts';
import { cleanMessages } from './messages.ts';
import { hasOwnStreamOptions, withoutStreamOptions } from './stream-options.ts';
import type { RequestBody } from './wire.ts';

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Refused by reasoning models unless at their default; the last three only come as operator-allowed extras. Requests
 * that ask for logprobs are planned past such models (`lackedWithoutSampling`).
 */
const samplingFields = [
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
] as const;

/** What goes with the sampling fields but would be missed in the answer. */
export const lackedWithoutSampling = 'logprobs';

const topP = ['top_p'] as const;
const streamOptions = ['stream_options'] as const;
const toolFields = ['tools', 'parallel_tool_calls'] as const;
const toolChoice = ['tool_choice'] as const;

function drop(body: RequestBody, fields: readonly string[], dropped: string[]): void {
  for (const field of fields) {
    if (body[field] === undefined) continue;
    body[field] = undefined;
    dropped.push(field);
  }
}

function setStreamOptions(body: RequestBody, request: ChatRequest, context: TranslationContext): void {
  if (context.form === withoutStreamOptions) {
    // What a client asks for beyond usage is its own affair, and so is the server's answer to it.
    if (!hasOwnStreamOptions(request)) body.stream_options = undefined;
  } else if (request.stream === true && context.facts.stream_usage) {
    body.stream_options = { ...request.stream_options, include_usage: true };
  }
}

function fitSampling(body: RequestBody, facts: ModelFacts, dropped: string[]): void {
  if (!facts.sampling) drop(body, samplingFields, dropped);
  const { temperature } = body;
  if (temperature === undefined) return;
  if (temperature > facts.temperature_max) body.temperature = facts.temperature_max;
  if (!facts.temperature_with_top_p) drop(body, topP, dropped);
}

function fitStop(body: RequestBody, request: ChatRequest, { stopAsList }: Dialect): void {
  const sequences = stopSequences(request);
  if (sequences.length === 0) body.stop = undefined;
  else if (stopAsList || typeof body.stop !== 'string') body.stop = sequences;
}

function fitMaxTokens(body: RequestBody, request: ChatRequest, facts: ModelFacts): void {
  const limit = request.max_tokens ?? request.max_completion_tokens ?? facts.default_max_tokens;
  // A field that is not there is not added: each changes the shape of the object.
  if (body.max_tokens !== undefined) body.max_tokens = undefined;
  if (body.max_completion_tokens !== undefined) body.max_completion_tokens = undefined;
  if (limit !== null) body[facts.max_tokens_field] = limit;
}

/**
 * Choices about tools are refused where there are no tools, and so is an empty list. To call for a tool that
 * is not there is a mistake, which the vendor may name. Some models take tools only where they do not reason, and have
 * to be told so.
 */
function fitTools(body: RequestBody, request: ChatRequest, facts: ModelFacts, dropped: string[]): void {
  if (request.tools !== undefined && request.tools.length > 0) {
    if (facts.tools_effort !== null) body.reasoning_effort ??= facts.tools_effort;
    return;
  }
  drop(body, toolFields, dropped);
  if (!isForced(request.tool_choice)) drop(body, toolChoice, dropped);
}

/**
 * A request for a vendor of OpenAI shape: the client's own values by reference under the names this vendor
 * and model take. What the vendor lacks is left out and named in `dropped`.
 */
export function translateCompatibleRequest(
  dialect: Dialect,
  request: ChatRequest,
  context: TranslationContext,
): UpstreamRequest {
  const { facts } = context;
  const dropped: string[] = [];
  const form = { knowsDeveloper: facts.developer_role, plainText: dialect.plainText };
  const body: RequestBody = {
    ...request,
    model: context.model,
    messages: cleanMessages(request.messages, form),
  };
  setStreamOptions(body, request, context);
  if (!dialect.verbatim) {
    drop(body, dialect.lackedFields(facts), dropped);
    if (request.stream !== true || !facts.stream_usage) drop(body, streamOptions, dropped);
    if (body.stop !== undefined) fitStop(body, request, dialect);
    fitSampling(body, facts, dropped);
    fitMaxTokens(body, request, facts);
    fitTools(body, request, facts, dropped);
  }
  return { path: dialect.path(facts), headers: noHeaders, body: JSON.stringify(body), dropped };
}
