import type { AttackCase } from '../attack-case.ts';
import type { Answer } from '../wire/answer-reader.ts';
import type { Seen } from '../wire/client.ts';
import { isShortage } from './bystander.ts';

export interface CaseFacts {
  readonly id: string;
  readonly attack: AttackCase;
  readonly seen: Seen;
  /** Statuses of the rows with this request id. */
  readonly rows: readonly string[];
  /** Calls that the vendor received for it. */
  readonly calls: number;
  /** The machine stood still for so long that load had to be shed. */
  readonly starved: boolean;
}

/** Why the answer to a stream is not what it claims; null when it is. */
function streamProblem(body: string, id: string): string | null {
  const data = body.split('\n').filter((line) => line.startsWith('data: '));
  const events = data.map((line) => line.slice('data: '.length));
  const gateways = events.filter((event) => event.includes('"gateway":{'));
  const done = events.at(-1) === '[DONE]';
  for (const event of events) {
    if (event === '[DONE]') continue;
    try {
      JSON.parse(event);
    } catch {
      return `an event is no JSON: ${event.slice(0, 120)}`;
    }
  }
  if (!done) return gateways.length > 0 ? 'a gateway block without [DONE]' : null;
  if (gateways.length !== 1) return `${gateways.length} gateway blocks before [DONE]`;
  return gateways[0]?.includes(id) === true ? null : 'the gateway block names another request';
}

function jsonProblem(body: string, id: string): string | null {
  try {
    const { gateway } = JSON.parse(body) as { readonly gateway?: { readonly request_id?: unknown } };
    return gateway?.request_id === id ? null : `the gateway block names ${String(gateway?.request_id)}`;
  } catch {
    return 'a JSON answer that is no JSON';
  }
}

function isDone(answer: Answer): boolean {
  return answer.body.endsWith('data: [DONE]\n\n');
}

function answerProblem(answer: Answer, facts: CaseFacts): string | null {
  const { attack, id, rows } = facts;
  const { status, body, whole, kept, headers } = answer;
  if (status === 503 && isShortage(body) && facts.starved) return null;
  if (attack.statuses !== null && !attack.statuses.includes(status)) {
    return `status ${status}, expected ${attack.statuses.join(' or ')}: ${body.slice(0, 160)}`;
  }
  if (status === 500 && body.includes('"api_error"') && attack.vendor?.sound !== true)
    return `500: ${body.slice(0, 160)}`;
  if (status !== 200 || attack.sending.method !== 'POST' || !kept) return null;
  const stream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!whole) return stream || facts.seen.ending !== 'closed' ? null : 'a JSON answer was cut';
  const found = stream ? streamProblem(body, id) : jsonProblem(body, id);
  if (found !== null) return found;
  const success = stream ? isDone(answer) : true;
  if (rows.length === 0) return 'an answer without a row';
  if (success !== (rows[0] === 'success'))
    return `the answer ${success ? 'is' : 'is not'} whole, its row says ${rows[0]}`;
  return null;
}

/** What is wrong with one case, seen from the client, the vendor and the log rows together; null: nothing. */
export function caseProblem(facts: CaseFacts): string | null {
  const { seen, rows, calls, attack } = facts;
  if (seen.problem !== null) return seen.problem;
  if (seen.ending === 'limit') return `neither answered nor ended in ${Math.round(seen.ms)} ms`;
  if (rows.length > 1) return `${rows.length} rows`;
  if (calls > 0 && rows.length === 0) return `${calls} calls and no row`;
  const [answer] = seen.answers;
  if (answer === undefined || seen.ending === 'left') return null;
  if (attack.sending.copies > 1) return null;
  return answerProblem(answer, facts);
}
