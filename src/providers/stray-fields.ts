/**
 * Fields of a message that clients replay because an answer carried them, and that no vendor wants: our own block and
 * what the OpenAI SDKs add to parsed messages.
 */
export const strayFields = ['gateway', 'parsed'] as const;
