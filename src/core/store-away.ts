/**
 * A store that the work needs is away, overloaded or not set up yet: a later call may succeed. Not an answer to
 * anybody: `http/answers/error-handler.ts` makes a 503 of it, the story of a chat goes on without what it wanted to
 * read.
 */
export class StoreAway extends Error {
  /** The wait was for our own pool: that says nothing of whether the store answers. */
  readonly crowded: boolean;

  constructor(cause: unknown, crowded: boolean) {
    super('The database is not available. Try again shortly.', { cause });
    this.name = new.target.name;
    this.crowded = crowded;
  }
}
