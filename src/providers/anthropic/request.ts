import { createHash } from 'node:crypto';
import type { ChatRequest } from '../../core/request/chat-request.ts';
import { stopSequences } from '../../core/request/stop-sequences.ts';
import type { ModelFacts } from '../../core/tables/model-facts.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import type { TranslationContext, UpstreamRequest } from '../provider.ts';
import { closedSchema } from './closed-schema.ts';
import { translateMessages } from './messages.ts';
import { relaxedSchema } from './relaxed-schema.ts';
import { translateTools } from './tools.ts';
import type { MessagesRequest } from './wire.ts';

/** `max_tokens` is required; this is what agentgateway fills in where the tables say nothing. */
const fallbackMaxTokens = 4096;
/** The API's own range ends here, whatever the tables say. */
const highestTemperature = 1;

/** A client's wish for JSON (OpenAI API reference: Chat Completions, read 2026-11-20). */
interface ResponseFormat {
  type: string;
  json_schema: { schema: object };
}

export const versionHeaders = Object.freeze({ 'anthropic-version': '2023-06-01' });

/** Request fields that have a translation below; unknown top-level fields answer 400, so all others go. */
const translatedFields = new Set([
  'model',
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'stop',
  'stream',
  'stream_options',
  'user',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
]);

function sampling(
  request: ChatRequest,
  facts: ModelFacts,
  dropped: string[],
): Pick<MessagesRequest, 'temperature' | 'top_p'> {
  const { temperature, top_p: topP } = request;
  const fields: { temperature?: number; top_p?: number } = {};
  if (temperature !== undefined) {
    const highest = Math.min(facts.temperature_max, highestTemperature);
    if (facts.sampling) fields.temperature = Math.min(temperature, highest);
    if (!facts.sampling || temperature > highest) dropped.push('temperature');
  }
  if (topP !== undefined) {
    const refused = !facts.sampling || (temperature !== undefined && !facts.temperature_with_top_p);
    if (refused) dropped.push('top_p');
    else fields.top_p = topP;
  }
  return fields;
}

function stopFields(request: ChatRequest): Pick<MessagesRequest, 'stop_sequences'> {
  const sequences = stopSequences(request);
  return sequences.length === 0 ? {} : { stop_sequences: sequences };
}

/** What nobody is called: a UUID or a digest. */
const opaqueId = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,128})$/i;

/** The vendor wants an opaque id without name, address or number. A name looks like a label: all are hashed. */
function opaqueUser(user: string): string {
  return opaqueId.test(user) ? user : createHash('sha256').update(user).digest('hex');
}

/** A schema is all that can be asked for; requests for other formats are planned past this vendor. */
function outputFormat(request: ChatRequest, dropped: string[]): Pick<MessagesRequest, 'output_config'> {
  const format: Untrusted<ResponseFormat> = request.response_format ?? {};
  const wanted = format.type === 'json_schema' && isRecord(format.json_schema) ? format.json_schema : {};
  const { schema }: Untrusted<ResponseFormat['json_schema']> = wanted;
  if (!isRecord(schema)) return {};
  let isRelaxed = false;
  const relaxed = relaxedSchema(schema, () => {
    isRelaxed = true;
  });
  if (isRelaxed) dropped.push('response_format.json_schema.schema');
  return { output_config: { format: { type: 'json_schema', schema: closedSchema(relaxed) } } };
}

/** A request for POST /v1/messages (Claude docs: Messages API). What has no counterpart is named in `dropped`. */
export function translateAnthropicRequest(
  request: ChatRequest,
  context: TranslationContext,
): UpstreamRequest {
  const { facts } = context;
  const { system, messages, dropped: droppedInMessages } = translateMessages(request.messages);
  const droppedFields = Object.keys(request).filter(
    (name) =>
      !translatedFields.has(name) && request[name] !== undefined && !(name === 'n' && request.n === 1),
  );
  const dropped = [...droppedFields, ...droppedInMessages];
  const body: MessagesRequest = {
    model: context.model,
    max_tokens:
      request.max_tokens ?? request.max_completion_tokens ?? facts.default_max_tokens ?? fallbackMaxTokens,
    ...(system.length > 0 && { system }),
    messages,
    ...sampling(request, facts, dropped),
    ...stopFields(request),
    ...(request.user !== undefined &&
      request.user !== '' && { metadata: { user_id: opaqueUser(request.user) } }),
    ...translateTools(request, dropped),
    ...outputFormat(request, dropped),
    ...(request.stream === true && { stream: true }),
  };
  return { path: '/v1/messages', headers: versionHeaders, body: JSON.stringify(body), dropped };
}
