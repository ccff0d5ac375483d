import type { ProviderName } from '../core/provider-name.ts';
import { anthropic } from './anthropic/anthropic.ts';
import { openai } from './openai-compatible/openai.ts';
import { sarvam } from './openai-compatible/sarvam.ts';
import { selfHosted } from './openai-compatible/self-hosted.ts';
import { together } from './openai-compatible/together.ts';
import type { Provider } from './provider.ts';

/** Every provider of core/provider-name.ts; the compiler demands the pair. */
export const providers = {
  openai,
  anthropic,
  together,
  sarvam,
  self_hosted: selfHosted,
} satisfies Record<ProviderName, Provider>;
