import type { Turns } from './measure.ts';
import type { Suite } from './suites.ts';
import { median, ratio } from './tables.ts';
import { ALL_TRACES, ANTHROPIC, CACHED, FLOOR, GATEWAY, SOME_TRACES } from './targets.ts';
import { HELD_STREAMS } from './workload.ts';

/** What a request may cost and should, which is what this bench is for. */
interface Goal {
  readonly what: string;
  readonly must: number;
  readonly aim: number;
  found(turns: Turns, held: Readonly<Record<string, number>>): number;
}

const against =
  (base: string, suite: Suite, name: string): Goal['found'] =>
  (turns) =>
    ratio(turns, suite, name, base).middle;

const overFloorMs = (turns: Turns): number =>
  median(turns.first.flatMap(({ [GATEWAY]: figures }) => figures?.overFloorMs ?? []));

const goals: readonly Goal[] = [
  { what: 'JSON request', must: 1.8, aim: 1.4, found: against(FLOOR, 'json', GATEWAY) },
  { what: 'JSON request, from the cache', must: 1.2, aim: 1, found: against(FLOOR, 'json', CACHED) },
  { what: 'event, paced', must: 1, aim: 0.8, found: against(FLOOR, 'paced', GATEWAY) },
  { what: 'event, burst', must: 1.3, aim: 1, found: against(FLOOR, 'burst', GATEWAY) },
  { what: 'translated event, burst', must: 2, aim: 1.5, found: against(FLOOR, 'burst', ANTHROPIC) },
  { what: 'translated event, paced', must: 2, aim: 1.5, found: against(FLOOR, 'paced', ANTHROPIC) },
  {
    what: 'JSON request, traces at 1 %',
    must: 1.05,
    aim: 1.02,
    found: against(GATEWAY, 'json', SOME_TRACES),
  },
  { what: 'JSON request, traces at 100 %', must: 1.3, aim: 1.2, found: against(GATEWAY, 'json', ALL_TRACES) },
  { what: 'first token, ms more than through the floor', must: 0.1, aim: 0.05, found: overFloorMs },
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
