import { StoreAway } from './store-away.ts';

/** In the words of whoever said it first: the server, or the system for each address of its name. */
export function errorWords(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(errorWords))].join(', ');
  if (error instanceof StoreAway) return errorWords(error.cause);
  return error instanceof Error ? error.message : String(error);
}
