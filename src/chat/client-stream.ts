import type { CancelSignal } from './cancellation.ts';

/**
 * The client's end of a streamed answer, as the story sees it. `http/answers/reply-client.ts` implements it on the
 * raw response; nothing leaves before `open`.
 */
export interface ClientStream {
  /** True from `open` on: whatever happens then must end the stream. */
  readonly isOpen: boolean;
  /** Status 200 and the headers. Called once, with the first token in hand. */
  open(): void;
  /** False when the client reads too slowly: stop until `onDrain` calls back. */
  write(bytes: Buffer | string): boolean;
  /** What was written leaves now, and not behind all else that this turn has to do. */
  flush(): void;
  /** So many bytes of a whole answer stay in memory until this client has taken it, or is let go for others. */
  keeps(bytes: number): void;
  /** Calls back once, when the client has caught up. Until then the vendor's connection of that name is not read. */
  onDrain(callback: () => void, source: string | null): void;
  /** The last bytes, then a clean end. */
  end(bytes: string): void;
  /** Ends without a clean end: the answer must not look whole. */
  destroy(): void;
}

/** Who waits for the answer. */
export interface Client {
  /** Aborts with a CancelReason when the client leaves or the process must stop. */
  readonly signal: CancelSignal;
  readonly stream: ClientStream;
}
