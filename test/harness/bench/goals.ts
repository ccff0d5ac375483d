import type { Turns } from './measure.ts';
import type { Suite } from './suites.ts';
import { median, ratio } from './tables.ts';
import { ALL_TRACES, ANTHROPIC, CACHED, GATEWAY, SOME_TRACES } from './targets.ts';
import { HELD_STREAMS } from './workload.ts';

/** What a request may cost and should, which is what this bench is for. */
interface Goal {
  readonly what: string;
  readonly must: number;
  readonly aim: number;
  found(turns: Turns, held: Readonly<Record<string, number>>): number;
}

const cpu =
  (suite: Suite, name: string): Goal['found'] =>
  (turns) =>
    ratio(turns, suite, name).middle;

const addedMs = (turns: Turns): number =>
  median(turns.first.flatMap(({ [GATEWAY]: figures }) => figures?.addedMs ?? []));

const goals: readonly Goal[] = [
  { what: 'JSON request', must: 1.8, aim: 1.4, found: cpu('json', GATEWAY) },
  { what: 'JSON request, from the cache', must: 1.2, aim: 1, found: cpu('json', CACHED) },
  { what: 'event, paced', must: 1, aim: 0.8, found: cpu('paced', GATEWAY) },
  { what: 'event, burst', must: 1.3, aim: 1, found: cpu('burst', GATEWAY) },
  { what: 'translated event, burst', must: 2, aim: 1.5, found: cpu('burst', ANTHROPIC) },
  { what: 'translated event, paced', must: 2, aim: 1.5, found: cpu('paced', ANTHROPIC) },
  {
    what: 'JSON request, traces at 1 %',
    must: 1.05,
    aim: 1.02,
    found: cpu('json', SOME_TRACES),
  },
  { what: 'JSON request, traces at 100 %', must: 1.3, aim: 1.2, found: cpu('json', ALL_TRACES) },
  { what: 'first token, ms more than through the floor', must: 0.1, aim: 0.05, found: addedMs },
  {
    what: `MiB for ${HELD_STREAMS.toLocaleString('en')} open streams`,
    must: 40,
    aim: 30,
    found: (_turns, held) => held[GATEWAY] ?? Number.NaN,
  },
];

/** Each goal beside what was found, as rows of a table. */
export function goalRows(
  turns: Turns,
  held: Readonly<Record<string, number>>,
): readonly (readonly string[])[] {
  return goals.map(({ what, must, aim, found }) => {
    const value = found(turns, held);
    return [what, String(must), String(aim), Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 2 : 0)];
  });
}
