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

/** Parses or throws InvalidRequestError that names the first bad field; nothing behind it is looked at. */
export function parseOrThrow<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = parseToFirstMistake(schema, value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    const name = shownParam(pathText([...issue.path, ...issue.keys.slice(0, 1)]));
    throw new InvalidRequestError(`Unknown field: ${name}.`, name, 'unknown_field');
  }
  if (issue === undefined || issue.path.length === 0) throw notAnObject();
  const param = shownParam(pathText(issue.path));
  throw new InvalidRequestError(`${param}: ${issue.message}`, param);
}
