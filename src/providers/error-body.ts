import type { VendorCode } from '../core/error-codes.ts';
import { maxReasonLength } from '../core/secret/redact.ts';
import type { Untrusted } from './json-value.ts';
import { isRecord, parseJson, textOf } from './json-value.ts';

/** Of what is read to find a vendor's words: to look through a megabyte takes a fifth of a second. */
const longestRead = 8 * maxReasonLength;
const maxCodeLength = 100;

/**
 * What is read of an error object, whichever vendor's (OpenAI docs: Error codes; Claude docs: Errors; Together docs:
 * Error codes; Sarvam docs: Errors & Troubleshooting; all read 2026-11-20). Which has what: see `readErrorValue`.
 */
interface WireError {
  object: string;
  type: string;
  code: string | number;
  message: string;
  detail: unknown;
  msg: string;
  error: unknown;
  choices: unknown;
}

export interface VendorError {
  readonly message: string;
  readonly code: VendorCode | null;
}

function clean(text: string, limit: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, limit);
}

/** What a code, a type or a step of a path looks like; a sentence in its place may be a piece of the prompt. */
const identifier = /^[A-Za-z0-9_.:/-]+$/;

function nameOf(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value.length <= maxCodeLength && identifier.test(value) ? value : null;
}

function codeOf(error: Untrusted<WireError>): VendorCode | null {
  return (nameOf(error.code) ?? nameOf(error.type)) as VendorCode | null;
}

/**
 * Where validators written in Python put the refused value into their own sentence, and where llama.cpp and Ollama put
 * what the model said that they could not parse.
 */
const quotedText =
  /input_value\s*=|['"]input['"]\s*:|(?<=\bFailed to parse input at pos \d{1,9}): |(?<=\berror parsing tool call): raw=/;

/** How many complaints of one validation are quoted, and how deep their paths go. */
const maxComplaints = 3;
const maxPathSteps = 12;

/** `{loc, msg, type, input, ctx}` of FastAPI and pydantic: all but what holds the input. */
function complaintText(given: unknown): string {
  if (!isRecord(given)) return '';
  const { loc, msg, type } = given;
  const steps = Array.isArray(loc) ? loc.slice(0, maxPathSteps).map((step) => nameOf(step) ?? '…') : [];
  const kind = nameOf(type);
  return [steps.join('.'), textOf(msg), kind === null ? '' : `(${kind})`]
    .filter((part) => part !== '')
    .join(' ');
}

function messageText(given: unknown): string {
  if (!Array.isArray(given)) {
    const text = textOf(given).slice(0, longestRead);
    const quoted = text.search(quotedText);
    return quoted === -1 ? text : `${text.slice(0, quoted)}…`;
  }
  const complaints = given.slice(0, maxComplaints).map(complaintText);
  return messageText(complaints.filter((text) => text !== '').join('; '));
}

/**
 * The vendor's words in any shape seen: `{"error": {message, type, code}}`, `{"error": "text"}`,
 * `{"object": "error", message}`, `{"detail": …}` or plain text. HTML is a proxy speaking and says nothing. Only
 * messages, types, codes and paths are read: validators echo the refused input beside them.
 */
export function readErrorValue(value: unknown): VendorError {
  if (typeof value === 'string') return { message: clean(messageText(value), maxReasonLength), code: null };
  if (!isRecord(value)) return { message: '', code: null };
  const body: Untrusted<WireError> = value;
  const inner = body.error;
  if (typeof inner === 'string' && inner !== '') {
    return { message: clean(messageText(inner), maxReasonLength), code: codeOf(body) };
  }
  const error: Untrusted<WireError> = isRecord(inner) ? inner : body;
  // Nothing else is quoted: what a vendor adds beside these is often the request itself.
  const message = messageText(error.message) || messageText(error.detail) || messageText(error.msg);
  return { message: clean(message, maxReasonLength), code: codeOf(error) };
}

/** What stands in it may be the request. Words in brackets are words: `[error] no such model`. */
const markupOrCutJson = /^\s*(?:[<{]|\[\s*(?:[[{"\]\d-]|$))/;

/** As `readErrorValue`, of a body as it came; an empty message when it holds nothing to quote. */
export function readErrorBody(body: Buffer): VendorError {
  const text = body.toString('utf8');
  const value = parseJson(text);
  if (value !== undefined) return readErrorValue(value);
  return readErrorValue(markupOrCutJson.test(text) ? '' : text);
}

/** True for a 200 body or a stream event that is an error object in one of the shapes in use. */
export function isErrorValue(value: Untrusted<WireError>): boolean {
  const error = value.error;
  if (error !== undefined && error !== null && error !== '' && error !== false) return true;
  return value.object === 'error' || (value.type === 'error' && value.choices === undefined);
}
