import { appendFileSync } from 'node:fs';

/** One row of the scorecard, docs/faults.md. */
export interface FaultRow {
  /** What goes wrong, or what an attacker does. */
  readonly fault: string;
  /** What the gateway must do then. */
  readonly required: string;
  /** What was measured, with its unit; empty where there is nothing to measure. */
  readonly figure: string;
  readonly passed: boolean;
}

/** Appends one row to the file that GW_SCORECARD_FILE names (JSON lines); without it, does nothing. */
export function recordFault({ fault, required, figure, passed }: FaultRow): void {
  const file = process.env['GW_SCORECARD_FILE'];
  if (file === undefined || file === '') return;
  // One short append per row: rows of several processes do not mix.
  appendFileSync(file, `${JSON.stringify({ fault, required, figure, passed })}\n`);
}
