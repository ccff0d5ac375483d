import type { Reading } from './read-answer.ts';
import { readByOurs } from './read-answer.ts';

/** Readers that ours is compared with. */
export type OtherReader = 'node' | 'undici';

/** Something about an answer on which two readers differ, and ours is right to. */
export interface KnownDifference {
  readonly what: string;
  readonly why: string;
  /** Whether the answer, as Latin-1, has it. */
  readonly isIn: (answer: string) => boolean;
}

/** Without one or more of the line ends at its end it would be whole, and its connection kept. */
function hasLineEndBehind(answer: string): boolean {
  for (let end = answer.length - 1; end > 0 && /[\r\n]/.test(answer[end] as string); end -= 1) {
    if (readByOurs(Buffer.from(answer.slice(0, end), 'latin1')).kept) return true;
  }
  return false;
}

const like = (pattern: RegExp) => (answer: string) => pattern.test(answer);

/** Answers that the others take and ours refuses. */
export const refusedByOurs: readonly KnownDifference[] = [
  {
    what: 'a coding that is not chunked alone',
    why: 'others read up to the end of the connection, or take the last of a list: which depends on the reader',
    isIn: like(/^transfer-encoding:(?![ \t]*chunked\r\n)/im),
  },
  {
    what: 'two fields with codings',
    why: 'some join them to a list, some take one of them',
    isIn: like(/^transfer-encoding:.*\r\n(?:.+\r\n)*transfer-encoding:/im),
  },
  {
    what: 'a coding in HTTP/1.0',
    why: 'the older version knows none (RFC 9112 section 6.1: its framing is faulty)',
    isIn: like(/^HTTP\/1\.0 [\s\S]*\ntransfer-encoding:/im),
  },
  {
    what: 'white space behind a length',
    why: 'readers differ on whether it belongs to the value',
    isIn: like(/^content-length:[^\r\n]*[ \t]\r\n/im),
  },
  {
    what: 'a length of more than fifteen digits',
    why: 'the limit is on digits, so zeros count',
    isIn: like(/^content-length:[ \t]*\d{16}/im),
  },
  {
    what: 'a chunk size of more than twelve digits',
    why: 'the limit is on digits, so zeros count',
    isIn: like(/\n[0-9a-f]{13}/i),
  },
  {
    what: 'an escape in an extension of a chunk',
    why: 'nobody sends one, and no reader needs to know where the quotes end',
    isIn: like(/\n[0-9a-f]+;[^\r\n]*\\/i),
  },
  {
    what: 'a line of more than 1 KiB between chunks or behind them',
    why: 'no vendor sends one; undici has no limit for extensions',
    isIn: like(/\n(?:[0-9a-f]+;|[!-9;-~]+:)[^\r\n]{1000}/i),
  },
  {
    what: 'more than 16 KiB of trailers',
    why: 'nobody reads them',
    isIn: like(/\n0\r\n[\s\S]{16384}/),
  },
  {
    what: 'more than 256 fields, or a head of more than 16 KiB',
    why: 'each may become a property; the others were told to take any',
    isIn: (answer) => answer.split('\r\n').length > 257 || answer.indexOf('\r\n\r\n') > 16_384,
  },
  {
    what: 'an empty line in front of the answer',
    why: 'what lies between two answers belongs to neither',
    isIn: like(/^(?:HTTP\/1\.1 1\d\d.*\r\n(?:.+\r\n)*\r\n)*[\r\n]/),
  },
  {
    what: 'a control character in the reason',
    why: 'RFC 9112 section 4 has none',
    isIn: like(/^HTTP\/\d\.\d \d{3} [^\r\n]*[^\t\r\n -~\x80-\xff]/m),
  },
  {
    what: 'another version, or another protocol',
    why: 'what it means there was not read',
    isIn: like(/^(?:HTTP\/(?!1\.[01])|RTSP|ICE)/m),
  },
  {
    what: 'an interim answer in HTTP/1.0',
    why: 'the older version knows none',
    isIn: like(/^HTTP\/1\.0 1\d\d/m),
  },
  {
    what: 'an interim answer that says how long it is',
    why: 'RFC 9110 section 8.6 and RFC 9112 section 6.1 forbid it: to some readers a body follows',
    isIn: like(/^HTTP\/1\.1 1\d\d.*\r\n(?:.+\r\n)*(?:content-length|transfer-encoding):/im),
  },
  {
    what: 'more than sixteen interim answers',
    why: 'a flood of them is an attack',
    isIn: like(/(?:HTTP\/1\.1 1\d\d.*\r\n(?:.+\r\n)*\r\n){17}/),
  },
  {
    what: 'a trailer that names a coding',
    why: 'RFC 9110 section 6.5.1 forbids it; the others refuse a length there, and not this',
    isIn: like(/\n0(?:;.*)?\r\n(?:.+\r\n)*transfer-encoding:/i),
  },
];

/** Answers whose connection the others keep and ours closes. */
export const closedByOurs: readonly KnownDifference[] = [
  {
    what: '204 or 304 that says how long its body is',
    why: 'a server that sends it too sends it in front of the next answer; undici closes as well',
    isIn: like(/^HTTP\/1\.[01] (?:204|304)[\s\S]*\n(?:content-length|transfer-encoding):/im),
  },
  {
    what: 'a line end behind the answer',
    why: 'as any other byte there',
    isIn: hasLineEndBehind,
  },
  {
    what: 'a connection option that is more than close',
    why: 'who says so has no use for the connection',
    isIn: like(/^connection:(?!(?:.*,)?[ \t]*close[ \t]*(?:,|\r)).*close/im),
  },
  {
    what: 'white space behind close',
    why: 'undici takes a tab for a part of the word; node strips it as we do',
    isIn: like(/^connection:[^\r\n]*close[ \t]+\r/im),
  },
  {
    what: 'HTTP/1.0 with keep-alive',
    why: 'its framing is less certain, and no vendor speaks it',
    isIn: like(/^HTTP\/1\.0 /m),
  },
];

/** Answers that ours takes and another one refuses: by its own choice, not for what they say. */
export const refusedByOthers: readonly (KnownDifference & { readonly by: OtherReader })[] = [
  {
    by: 'undici',
    what: '100 Continue that nobody asked for',
    why: 'undici takes it for a bug of the server; RFC 9110 section 15.2 wants it read, and llhttp reads it',
    isIn: like(/^HTTP\/1\.1 100[ \r]/m),
  },
];

/** Order of fields aside, and white space behind values, of which the others leave some. */
function meaning({ status, fields, body }: Reading): string {
  return JSON.stringify([status, fields.map((text) => text.trimEnd()).sort(), body]);
}

export interface Comparison {
  /** How the readers differ; null where they do not. */
  readonly problem: string | null;
  /** The known differences of which one has to be in the answer. */
  readonly explainedBy: readonly KnownDifference[];
}

const alike: Comparison = { problem: null, explainedBy: [] };

/**
 * Ours against another reader: it may take less than that one, where it is known, and never more. A cut answer and one
 * that is none are one outcome: no answer, and no connection.
 */
export function compare(ours: Reading, other: Reading, reader: OtherReader): Comparison {
  if (ours.verdict !== 'whole') {
    return other.verdict === 'whole'
      ? { problem: `only ${reader} takes it`, explainedBy: refusedByOurs }
      : alike;
  }
  if (other.verdict !== 'whole') {
    return {
      problem: `${reader} refuses it`,
      explainedBy: refusedByOthers.filter(({ by }) => by === reader),
    };
  }
  if (meaning(ours) !== meaning(other)) return { problem: `${reader} sees another answer`, explainedBy: [] };
  if (ours.kept === other.kept) return alike;
  if (ours.kept) return { problem: `${reader} would not keep the connection`, explainedBy: [] };
  return { problem: `only ${reader} would keep the connection`, explainedBy: closedByOurs };
}
