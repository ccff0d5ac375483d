/** What a request id may be. A longer one makes longer cursors (core/log/log-cursor.ts). */
export const acceptableRequestId = /^[A-Za-z0-9_-]{1,128}$/;
