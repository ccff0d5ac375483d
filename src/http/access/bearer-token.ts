import { hash, timingSafeEqual } from 'node:crypto';

/** Spaces (RFC 7235 2.1), one token: everything else is malformed and costs no look-up. */
const bearer = /^Bearer +([!-~]{1,512})$/i;
const maxTokenLength = 512;
/** As nearly everybody sends it. */
const plainStart = 'Bearer ';
const headerName = 'authorization';

/** False when another line of the header says something else: Node keeps the first and drops the others unseen. */
function isUnambiguous(rawHeaders: readonly string[], authorization: string): boolean {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== headerName.length || name.toLowerCase() !== headerName) continue;
    if (rawHeaders[index + 1] !== authorization) return false;
  }
  return true;
}

function isToken(text: string, from: number): boolean {
  if (text.length === from || text.length - from > maxTokenLength) return false;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x21 || code > 0x7e) return false;
  }
  return true;
}

/** The token of `Authorization: Bearer <token>`; undefined for what is none. */
export function bearerToken(rawHeaders: readonly string[], authorization: string): string | undefined {
  if (!isUnambiguous(rawHeaders, authorization)) return undefined;
  if (authorization.startsWith(plainStart) && isToken(authorization, plainStart.length))
    return authorization.slice(plainStart.length);
  return bearer.exec(authorization)?.[1];
}

/** Compares secrets in a time that says nothing of where they differ. */
export function isSameText(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(hash('sha256', given)), Buffer.from(hash('sha256', expected)));
}
