import type { ContentFeature } from './request/content-fields.ts';
import type { ModelFacts } from './tables/model-facts.ts';

/** What a model can or cannot do, as the tables say it. */
const modelFeatures = [
  'vision',
  'image_urls',
  'tools',
  'forced_tool',
  'json_object',
  'json_schema',
  'multiple_choices',
  'prefill',
  'stop',
] as const;
type ModelFeature = (typeof modelFeatures)[number];

/**
 * Something a request needs that not every candidate can do. The first ones are model facts; the others are
 * words that a vendor's format may lack whatever the model (`Provider.lacks`).
 */
export type Feature =
  | ModelFeature
  | 'blank_stop'
  | 'other_tool_choice'
  | 'other_response_format'
  | 'audio_input'
  | 'file_input'
  | 'video_input'
  | 'custom_tools'
  | 'single_tool_call'
  | ContentFeature
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

const isModelFeature = (feature: Feature): feature is ModelFeature =>
  (modelFeatures as readonly string[]).includes(feature);

export const lengthNeed: FeatureNeed = { feature: 'context', param: 'messages' };

function cannot({ feature }: FeatureNeed, facts: ModelFacts, lacks: readonly Feature[]): boolean {
  return lacks.includes(feature) || (isModelFeature(feature) && !facts[feature]);
}

function isTooLong(needs: RequestNeeds, facts: ModelFacts): boolean {
  return facts.context_tokens !== null && needs.inputTokensAtLeast > facts.context_tokens;
}

/**
 * The first need that a candidate cannot meet, or null when it can serve the request. `lacks` names what its
 * vendor's format has no words for.
 */
export function missingFeature(
  needs: RequestNeeds,
  facts: ModelFacts,
  lacks: readonly Feature[],
): FeatureNeed | null {
  for (const need of needs.features) if (cannot(need, facts, lacks)) return need;
  return isTooLong(needs, facts) ? lengthNeed : null;
}

/** All the needs that a candidate cannot meet, in the order in which a refusal names them. */
export function missingFeatures(
  needs: RequestNeeds,
  facts: ModelFacts,
  lacks: readonly Feature[],
): readonly FeatureNeed[] {
  const missing = needs.features.filter((need) => cannot(need, facts, lacks));
  return isTooLong(needs, facts) ? [...missing, lengthNeed] : missing;
}

const featureTexts: Readonly<Record<Feature, string>> = {
  vision: 'image inputs',
  image_urls: 'images given by URL',
  tools: 'tool calls',
  forced_tool: 'a forced tool_choice',
  other_tool_choice: 'this kind of tool_choice',
  json_object: 'response_format json_object',
  json_schema: 'response_format json_schema',
  other_response_format: 'this type of response_format',
  multiple_choices: 'n greater than 1',
  stop: 'stop sequences',
  blank_stop: 'stop sequences of white space only',
  prefill: 'a conversation that ends with an assistant message',
  audio_input: 'audio inputs',
  file_input: 'file inputs',
  video_input: 'video inputs',
  custom_tools: 'tools that are no functions',
  single_tool_call: 'a limit of one tool call at a time',
  logprobs: 'logprobs',
  other_modalities: 'modalities other than text',
  functions: 'functions, the older name of tools',
  web_search: 'web search',
  context: 'a prompt of this length',
};

export function featureText(feature: Feature): string {
  return featureTexts[feature];
}
