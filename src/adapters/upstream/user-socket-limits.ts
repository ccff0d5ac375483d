/** What servers that users name may take of this process. */
export interface UserSocketLimits {
  /** Calls to all of them under way, and with them sockets: each has one, and idle ones make room. */
  readonly sockets: number;
  /** Calls of one user under way to any of them. */
  readonly perUser: number;
}

/** Where neither files nor memory are a bound. */
const mostUserSockets = 2048;
/**
 * Of the heap's limit, for each: a stream over TLS takes 170 KiB of this process, most of it beside the heap, which has
 * three fifths of the container. What the kernel takes for one whose client does not keep up, 6 MiB, is not in it:
 * `SentAnswers` bounds that.
 */
const heapBytesPerSocket = 300 * 1024;

/** A quarter of all files for users' servers, no more than memory is there for, and a quarter of that for one user. */
export function userSocketLimitsWithin(openFiles: number, heapBytes: number): UserSocketLimits {
  const sockets = Math.floor(Math.min(mostUserSockets, openFiles / 4, heapBytes / heapBytesPerSocket));
  return { sockets, perUser: Math.max(1, Math.floor(sockets / 4)) };
}
