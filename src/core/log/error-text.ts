import { redactReason } from '../secret/redact.ts';
import type { RequestEnd } from '../settled-request.ts';

/** How the column `error` is written and read: the type of the error stands before what it says. */
const separator = ': ';

/** `<type>: <message>`, at most 500 characters, without anything that looks like a key; null on success. */
export function errorText(end: RequestEnd): string | null {
  switch (end.status) {
    case 'success':
      return null;
    case 'client_closed':
      return `client_closed${separator}The client left before the end of the answer.`;
    default:
      return redactReason(`${end.error.type}${separator}${end.error.message}`);
  }
}

/** What `errorText` wrote before the message; null on success. */
export function errorTypeIn(text: string | null): string | null {
  if (text === null) return null;
  const end = text.indexOf(separator);
  return end === -1 ? text : text.slice(0, end);
}
