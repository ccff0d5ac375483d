import type { RequestLog } from '../chat/ports.ts';
import type { LimitGate } from './limit-gate.ts';

/** The log, and what each row says is counted against its user's limits. */
export function countedBy(gate: Pick<LimitGate, 'settled'>, requestLog: RequestLog): RequestLog {
  return {
    record: (settled) => {
      // First: no row is to be lost by what goes wrong in counting it.
      const kept = requestLog.record(settled);
      gate.settled(settled);
      return kept;
    },
    accepting: (userId) => requestLog.accepting(userId),
  };
}
