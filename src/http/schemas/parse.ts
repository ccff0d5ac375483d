import type { z } from 'zod';
import { InvalidRequestError } from '../../core/errors.ts';
import { parseToFirstMistake } from '../../core/first-mistake.ts';
import { pathText } from '../../core/path-text.ts';

/** A field name fit for an error message: client data, so it is cut short. */
export function shownParam(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name;
}

/** 422: what was sent is no JSON, or not as much of it as every body is. */
export const notJson = (message: string): InvalidRequestError =>
  new InvalidRequestError(message, null, 'invalid_json');

/** 422: no body, or one that is some other JSON. */
export const notAnObject = (): InvalidRequestError => notJson('The body must be a JSON object.');

/**
 * The mistake inside of what a union takes one way only: of a list where a text or a list may stand, that of its item.
 * Itself where no way, or more than one, goes further than to the value as a whole. Nothing is parsed again for it.
 */
export function innermostIssue(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const firsts = issue.errors.map(([first]) => first).filter((first) => (first?.path.length ?? 0) > 0);
  const [inside] = firsts;
  if (inside === undefined || firsts.length > 1) return issue;
  return innermostIssue({ ...inside, path: [...issue.path, ...inside.path] });
}

/** What a value may be by its schema, as zod names it; empty where that is more than a kind or a few words. */
function expectedOf(issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code === 'invalid_type') return [issue.expected];
  if (issue.code === 'invalid_value') return issue.values.map((value) => JSON.stringify(value));
  if (issue.code !== 'invalid_union') return [];
  const ways = issue.errors.map(([first]) => (first?.path.length === 0 ? expectedOf(first) : []));
  return ways.some((way) => way.length === 0) ? [] : ways.flat();
}

/** What zod says of a union whose schema has no words for it. */
const noWords = 'Invalid input';

/** The words of the schema, or what it takes. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.message !== noWords) return issue.message;
  const expected = [...new Set(expectedOf(issue))];
  return expected.length === 0 ? noWords : `${noWords}: expected ${expected.join(' or ')}`;
}

/** Parses or throws InvalidRequestError that names the first bad field; nothing behind it is looked at. */
export function parseOrThrow<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = parseToFirstMistake(schema, value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  const issue = first && innermostIssue(first);
  if (issue?.code === 'unrecognized_keys') {
    const name = shownParam(pathText([...issue.path, ...issue.keys.slice(0, 1)]));
    throw new InvalidRequestError(`Unknown field: ${name}.`, name, 'unknown_field');
  }
  if (issue === undefined || issue.path.length === 0) throw notAnObject();
  const param = shownParam(pathText(issue.path));
  throw new InvalidRequestError(`${param}: ${messageOf(issue)}`, param);
}
