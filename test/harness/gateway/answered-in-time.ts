import { eventually } from '../measure/eventually.ts';
import type { HttpResponse } from './http-client.ts';

/** With these a gateway asks its client to come again: on a busy machine Postgres may be late, and a line long. */
const comeAgain = /"(database_unavailable|too_many_queries)"/;

/**
 * The answer, asked for again as a client may, and how often it was asked for. What was late may have been done all the
 * same: then the repeat finds it done.
 */
export async function answeredInTime(
  ask: () => Promise<HttpResponse>,
): Promise<HttpResponse & { readonly asked: number }> {
  let asked = 0;
  return eventually(async () => {
    const response = await ask();
    asked += 1;
    return comeAgain.test(response.text) ? undefined : { ...response, asked };
  });
}
