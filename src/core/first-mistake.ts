import type { z } from 'zod';

/**
 * zod keeps the flag for its `z.validate`, since whoever reads all issues, or what was parsed in spite of them, would
 * miss some. A wrong type, value or absence ends the parse; an unknown field never does, and a bound or refinement only
 * with `abort: true`. So items of a long list that others fill are loose objects, or as large as their fields ask for.
 */
const upToFirstMistake: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/**
 * `schema.safeParse` for whoever says no more than what is wrong first: that issue is the same, and no list or object
 * is looked at behind it. How many issues there are, each of some 1.5 KB of heap, is otherwise for the sender to
 * choose: 140 KB of bad messages held the loop for 60 ms and took 60 MB. Nobody reads the message of zod's error: it is
 * all of its issues as indented JSON.
 */
export function parseToFirstMistake<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.ZodSafeParseResult<z.output<Schema>> {
  return schema.safeParse(value, upToFirstMistake);
}
