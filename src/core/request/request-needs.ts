import type { Feature, FeatureNeed, RequestNeeds } from '../capability.ts';
import type { ChatMessage, ChatRequest } from './chat-request.ts';
import { contentFields } from './content-fields.ts';
import { inlinePdf } from './inline-pdf.ts';
import { stopSequences } from './stop-sequences.ts';

/**
 * Characters per token for a lower bound. Ordinary text has about four, indented and padded text up to seven;
 * who errs here keeps a request from a model that might have held it, so it is eight.
 */
const charactersPerToken = 8;

interface Scan {
  images: boolean;
  imageUrls: boolean;
  toolHistory: boolean;
  characters: number;
  /** Parts that are neither text nor image. */
  media: readonly Feature[];
}

/** Content parts of the OpenAI format that not every vendor has words for. */
const mediaFeatures: Readonly<Partial<Record<string, Feature>>> = {
  input_audio: 'audio_input',
  file: 'file_input',
  video_url: 'video_input',
};
const noMedia: readonly Feature[] = [];

/** What a part asks for that is neither text nor image. A PDF in the request itself is no file to be fetched. */
function mediaFeatureOf(
  part: Readonly<Record<string, unknown>> & { readonly type: string },
): Feature | undefined {
  if (!Object.hasOwn(mediaFeatures, part.type)) return undefined;
  return part.type === 'file' && inlinePdf(part) !== null ? undefined : mediaFeatures[part.type];
}

/** A list without calls says nothing, as null does. */
function hasCalls({ tool_calls: calls }: ChatMessage): boolean {
  return Array.isArray(calls) && calls.length > 0;
}

function scanMessages(request: ChatRequest): Scan {
  const scan: Scan = { images: false, imageUrls: false, toolHistory: false, characters: 0, media: noMedia };
  for (const message of request.messages) {
    const { content, role } = message;
    if (role === 'tool' || hasCalls(message)) scan.toolHistory = true;
    if (typeof content === 'string') {
      scan.characters += content.length;
      continue;
    }
    for (const part of content ?? []) {
      if (typeof part['text'] === 'string') scan.characters += part['text'].length;
      if (part.type === 'text') continue;
      if (part.type !== 'image_url') {
        const media = mediaFeatureOf(part);
        if (media !== undefined && !scan.media.includes(media)) scan.media = [...scan.media, media];
        continue;
      }
      scan.images = true;
      const image = part['image_url'];
      const url = typeof image === 'object' && image !== null ? (image as { url?: unknown }).url : image;
      if (typeof url === 'string' && !url.startsWith('data:')) scan.imageUrls = true;
    }
  }
  return scan;
}

function isNamedFunction(choice: unknown): boolean {
  if (typeof choice !== 'object' || choice === null) return false;
  return (choice as { readonly type?: unknown }).type === 'function';
}

/** True when a tool must be called, or the choice is of a kind we do not know. */
export function isForced(choice: ChatRequest['tool_choice']): boolean {
  return choice !== undefined && choice !== 'auto' && choice !== 'none';
}

/** A tool of free text input; one with a schema is Anthropic's own spelling of a function. */
function isCustomTool(tool: Readonly<Record<string, unknown>>): boolean {
  return tool['type'] === 'custom' && typeof tool['input_schema'] !== 'object';
}

/** Tools offered, tools in the conversation so far, and how they are to be chosen. */
function addToolNeeds(request: ChatRequest, toolHistory: boolean, features: FeatureNeed[]): void {
  const { tools, tool_choice: choice } = request;
  const offered = tools !== undefined && tools.length > 0;
  if (offered) features.push({ feature: 'tools', param: 'tools' });
  else if (toolHistory) features.push({ feature: 'tools', param: 'messages' });
  if (offered && tools.some(isCustomTool)) features.push({ feature: 'custom_tools', param: 'tools' });
  // Of a tool that is named nobody calls a second one; clients send the field with every schema.
  if (offered && request.parallel_tool_calls === false && !isNamedFunction(choice))
    features.push({ feature: 'single_tool_call', param: 'parallel_tool_calls' });
  if (isForced(choice)) {
    features.push({ feature: 'forced_tool', param: 'tool_choice' });
    if (choice !== 'required' && !isNamedFunction(choice))
      features.push({ feature: 'other_tool_choice', param: 'tool_choice' });
  }
}

function addFormatNeeds(request: ChatRequest, features: FeatureNeed[]): void {
  const format = request.response_format;
  if (format === undefined) return;
  const { type } = format;
  if (type === 'text') return;
  const param = 'response_format';
  if (type !== 'json_schema') {
    features.push({ feature: type === 'json_object' ? 'json_object' : 'other_response_format', param });
    return;
  }
  features.push({ feature: 'json_schema', param });
  // A schema format without a schema asks for JSON of any shape.
  const given = format['json_schema'] as { readonly schema?: unknown } | null | undefined;
  if (typeof given?.schema !== 'object' || given.schema === null)
    features.push({ feature: 'json_object', param });
}

function addStopNeeds(request: ChatRequest, features: FeatureNeed[]): void {
  if (request.stop === undefined) return;
  const sequences = stopSequences(request);
  if (sequences.length === 0) return;
  features.push({ feature: 'stop', param: 'stop' });
  if (sequences.some((sequence) => sequence.trim() === ''))
    features.push({ feature: 'blank_stop', param: 'stop' });
}

function addContentNeeds(request: ChatRequest, features: FeatureNeed[]): void {
  for (const param in contentFields) {
    const value = request[param];
    if (value === undefined) continue;
    const { feature, asks } = contentFields[param] as (typeof contentFields)[string];
    if (asks(value)) features.push({ feature, param });
  }
}

function isBlank(text: unknown): boolean {
  return typeof text !== 'string' || text.trim() === '';
}

/** Texts of white space only say nothing; a part of any other kind does. */
function hasContent({ content, refusal }: ChatMessage): boolean {
  if (!isBlank(refusal)) return true;
  if (!Array.isArray(content)) return !isBlank(content);
  return content.some((part) => {
    if (part.type === 'text') return !isBlank(part['text']);
    return part.type !== 'refusal' || !isBlank(part['refusal']);
  });
}

/** Messages of the assistant's that say nothing are left out where a prefill counts; those of others are its end. */
function endsWithPrefill({ messages }: ChatRequest): boolean {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const message = messages[at];
    if (message?.role !== 'assistant' || hasCalls(message)) return false;
    if (hasContent(message)) return true;
  }
  return false;
}

/** Reads off the needs of a request, in the order in which a refusal names them. */
export function needsOf(request: ChatRequest): RequestNeeds {
  const { images, imageUrls, toolHistory, characters, media } = scanMessages(request);
  const features: FeatureNeed[] = [];
  if (images) features.push({ feature: 'vision', param: 'messages' });
  if (imageUrls) features.push({ feature: 'image_urls', param: 'messages' });
  for (const feature of media) features.push({ feature, param: 'messages' });
  addToolNeeds(request, toolHistory, features);
  addFormatNeeds(request, features);
  if (request.n !== undefined && request.n > 1) features.push({ feature: 'multiple_choices', param: 'n' });
  addStopNeeds(request, features);
  addContentNeeds(request, features);
  if (endsWithPrefill(request)) features.push({ feature: 'prefill', param: 'messages' });
  return { features, inputTokensAtLeast: Math.floor(characters / charactersPerToken) };
}
