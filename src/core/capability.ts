import type { ChatRequest } from './chat-request.ts';
import type { ModelFacts } from './model-facts.ts';

/** Something a request needs that not every model can do. */
export type Feature =
  | 'vision'
  | 'image_urls'
  | 'tools'
  | 'forced_tool'
  | 'json_object'
  | 'json_schema'
  | 'multiple_choices'
  | 'context';

export interface FeatureNeed {
  readonly feature: Feature;
  /** The body field that asks for it. */
  readonly param: string;
}

/** What a request needs, and a lower bound of its size. */
export interface RequestNeeds {
  readonly features: readonly FeatureNeed[];
  readonly inputTokensAtLeast: number;
}

/**
 * Characters per token for a lower bound: ordinary text has about four, so six errs towards trying a
 * model that might just hold the context.
 */
const charactersPerToken = 6;

function scanMessages(request: ChatRequest): { images: boolean; imageUrls: boolean; characters: number } {
  let images = false;
  let imageUrls = false;
  let characters = 0;
  for (const message of request.messages) {
    const content = message.content;
    if (typeof content === 'string') {
      characters += content.length;
      continue;
    }
    for (const part of content ?? []) {
      if (typeof part['text'] === 'string') characters += part['text'].length;
      if (part.type !== 'image_url') continue;
      images = true;
      const image = part['image_url'];
      const url = typeof image === 'object' && image !== null ? (image as { url?: unknown }).url : image;
      if (typeof url === 'string' && !url.startsWith('data:')) imageUrls = true;
    }
  }
  return { images, imageUrls, characters };
}

/** Reads off the needs of a request, in the order in which a refusal names them. */
export function needsOf(request: ChatRequest): RequestNeeds {
  const { images, imageUrls, characters } = scanMessages(request);
  const features: FeatureNeed[] = [];
  if (images) features.push({ feature: 'vision', param: 'messages' });
  if (imageUrls) features.push({ feature: 'image_urls', param: 'messages' });
  if (request.tools !== undefined && request.tools.length > 0) {
    features.push({ feature: 'tools', param: 'tools' });
  }
  const choice = request.tool_choice;
  if (choice === 'required' || typeof choice === 'object') {
    features.push({ feature: 'forced_tool', param: 'tool_choice' });
  }
  const format = request.response_format?.type;
  if (format === 'json_object' || format === 'json_schema') {
    features.push({ feature: format, param: 'response_format' });
  }
  if (request.n !== undefined && request.n > 1) features.push({ feature: 'multiple_choices', param: 'n' });
  return { features, inputTokensAtLeast: Math.floor(characters / charactersPerToken) };
}

/** The first need that a model cannot meet, or null when it can serve the request. */
export function missingFeature(needs: RequestNeeds, facts: ModelFacts): FeatureNeed | null {
  for (const need of needs.features) {
    if (need.feature !== 'context' && !facts[need.feature]) return need;
  }
  if (facts.context_tokens !== null && needs.inputTokensAtLeast > facts.context_tokens) {
    return { feature: 'context', param: 'messages' };
  }
  return null;
}

const featureTexts: Readonly<Record<Feature, string>> = {
  vision: 'image inputs',
  image_urls: 'images given by URL',
  tools: 'tool calls',
  forced_tool: 'a forced tool_choice',
  json_object: 'response_format json_object',
  json_schema: 'response_format json_schema',
  multiple_choices: 'n greater than 1',
  context: 'a prompt of this length',
};

export function featureText(feature: Feature): string {
  return featureTexts[feature];
}
