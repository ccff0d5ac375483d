/** Fields that only operators let through and that change what an answer is made of, not just its words. */
export type ContentFeature = 'logprobs' | 'other_modalities' | 'functions' | 'web_search';

interface ContentField {
  readonly feature: ContentFeature;
  /** Whether this value, which nobody has checked, asks for it. */
  readonly asks: (value: unknown) => boolean;
}

const isAmount = (value: unknown): boolean => typeof value === 'number' && value > 0;

/**
 * By name (OpenAI API reference: Chat Completions, read 2026-11-20). An answer without what they ask for would be half
 * of it, so they are needs, and no vendor is relieved of them.
 */
export const contentFields: Readonly<Record<string, ContentField>> = {
  // A number at Together (Together docs: Chat Completions).
  logprobs: { feature: 'logprobs', asks: (value) => value === true || isAmount(value) },
  top_logprobs: { feature: 'logprobs', asks: isAmount },
  modalities: {
    feature: 'other_modalities',
    asks: (value) => Array.isArray(value) && value.some((modality) => modality !== 'text'),
  },
  // The older name of tools, which answers with a call of its own shape.
  functions: { feature: 'functions', asks: (value) => Array.isArray(value) && value.length > 0 },
  web_search_options: { feature: 'web_search', asks: (value) => value !== null },
};

export const contentFieldNames: readonly string[] = Object.keys(contentFields);
