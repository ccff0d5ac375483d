import { compatibleProvider } from './compatible-provider.ts';

/** Takes every known field; what reasoning models refuse stands in the model facts. */
export const openai = compatibleProvider({ name: 'openai', defaultBaseUrl: 'https://api.openai.com' });
