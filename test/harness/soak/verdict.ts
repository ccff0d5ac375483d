import { recordFault } from '../scorecard/scorecard.ts';
import { sql } from '../servers/fault-postgres.ts';
import type { Tally } from '../stage/run-stage.ts';
import type { Asking } from './asking.ts';
import type { Done } from './disturb.ts';
import type { Row, Sample } from './judge.ts';
import {
  compareRows,
  drifts,
  flatness,
  isJudged,
  miscounted,
  shortestJudgedMinutes,
  unexpectedEnds,
} from './judge.ts';
import type { Ended } from './requests.ts';
import { kindTable } from './tables.ts';
import type { SoakWorld } from './world.ts';

export interface SoakRun {
  readonly world: SoakWorld;
  readonly ended: readonly Ended[];
  /** Requests that were due, and not sent. */
  readonly skipped: number;
  readonly asking: Asking;
  readonly done: Done;
  readonly samples: readonly Sample[];
  readonly minutes: number;
}

/** What was required, what was measured, and whether that will do. */
interface Check {
  readonly required: string;
  readonly figure: string;
  readonly passed: boolean;
  /** The first of them are printed. */
  readonly found?: readonly string[];
}

const mostShown = 5;

/** Prints what the run has found, and keeps it for the scorecard; a run too short for a check does not make it. */
export async function judge(run: SoakRun): Promise<Tally> {
  const { ended, done, minutes } = run;
  console.log(`\n${kindTable(ended)}\n`);
  console.log(`${run.skipped} requests were due and not sent, since too many were open.`);
  console.log(`${done.reloads} reloads, ${done.keyChanges} changes of keys, ${failOversOf(done)}.`);
  const checks = [
    ...(await ledgerChecks(run)),
    ...(minutes < shortestJudgedMinutes ? [] : lengthChecks(run)),
  ];
  if (minutes < shortestJudgedMinutes) console.log('A run this short is not judged for memory and latency.');
  const fault = `${minutes} minutes of mixed load with faults of vendors and clients, reloads, changes of keys and fail-overs`;
  for (const { required, figure, passed, found = [] } of checks) {
    console.log(`${passed ? 'passed' : 'FAILED'}: ${required}: ${figure}`);
    for (const one of found.slice(0, mostShown)) console.log(`  ${one}`);
    recordFault({ fault, required, figure, passed });
  }
  const failed = checks.filter(({ passed }) => !passed).length;
  return { passed: checks.length - failed, failed, skipped: 0 };
}

function failOversOf({ failOvers }: Done): string {
  const told = Object.entries(failOvers).map(([store, seconds]) => {
    const slowest = seconds.length === 0 ? '' : ` (as before within ${Math.max(...seconds).toFixed(1)} s)`;
    return `${seconds.length} fail-overs of ${store}${slowest}`;
  });
  return told.join(', ');
}

/** What clients saw, what the log holds, and what vendors were asked. */
async function ledgerChecks({ world, ended, asking }: SoakRun): Promise<Check[]> {
  const rows = await sql<Row>(
    world.stores.postgres.primaryUrl,
    'SELECT request_id AS id, jsonb_array_length(attempts) AS attempts, error FROM request_logs',
  );
  const { missing, doubled } = compareRows(ended, rows);
  const callsWrong = miscounted(ended, rows, world.calls);
  const ends = unexpectedEnds(ended, rows);
  return [
    {
      required: 'every whole answer has one row',
      figure: `${ended.length} requests, ${rows.length} rows, ${missing.length} missing, ${doubled.length} doubled`,
      passed: missing.length + doubled.length === 0,
      found: [...missing, ...doubled],
    },
    {
      required: 'vendors were called for each answer, and no more often than its row says',
      figure: `${callsWrong.length} of ${rows.length} otherwise`,
      passed: callsWrong.length === 0,
      found: callsWrong,
    },
    {
      required: 'each request ends as its kind must',
      figure: `${ends.length} of ${ended.length} otherwise`,
      passed: ends.length === 0,
      found: ends,
    },
    {
      required: 'new tables, keys and revocations hold for the next request',
      figure: `${asking.wrongs.length} times not`,
      passed: asking.wrongs.length === 0,
      found: asking.wrongs,
    },
  ];
}

/** What only a run of some length can tell. */
function lengthChecks({ samples, done }: SoakRun): Check[] {
  const { fromMs, toMs, isFlat } = flatness(samples);
  const counts = [done.reloads, done.keyChanges, done.failOvers.Postgres.length, done.failOvers.Redis.length];
  return [
    {
      required: 'everything happened',
      figure: `${done.reloads} reloads, ${done.keyChanges} changes of keys, ${failOversOf(done)}`,
      passed: counts.every((count) => count > 0),
    },
    ...drifts(samples).map(({ what, fromMiB, toMiB, share, isTooMuch }) => ({
      required: `${what} of the process grows by 5 % at most after the first quarter`,
      figure: `${fromMiB.toFixed(1)} to ${toMiB.toFixed(1)} MiB, ${(share * 100).toFixed(1)} %`,
      passed: !isTooMuch,
    })),
    {
      required: 'p99 of plain answers is flat: at the end at most 1.5 times that after the warm-up, and 5 ms',
      figure: `${fromMs.toFixed(1)} to ${toMs.toFixed(1)} ms, of ${samples.filter(isJudged).length} rounds of ${samples.length}; the others had a fail-over, or a machine that others used`,
      passed: isFlat,
    },
  ];
}
