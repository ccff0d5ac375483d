/** What servers that users name may take of this process. */
export interface UserSocketLimits {
  /** Calls to all of them under way, and with them sockets: each has one, and idle ones make room. */
  readonly sockets: number;
  /** Calls of one user under way to any of them. */
  readonly perUser: number;
}

/**
 * A socket takes some 50 KiB of this process, with TLS 100: all of them 100 to 200 MiB, where files are no bound. What
 * the kernel takes for one whose client does not keep up, 6 MiB, is not in it: `SentAnswers` bounds that.
 */
const mostUserSockets = 2048;

/** A quarter of all files for users' servers, and a quarter of that for one user. */
export function userSocketLimitsWithin(openFiles: number): UserSocketLimits {
  const sockets = Math.min(mostUserSockets, Math.floor(openFiles / 4));
  return { sockets, perUser: Math.max(1, Math.floor(sockets / 4)) };
}
