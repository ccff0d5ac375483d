import { readDocument, tableRows } from './documents.ts';

/** What `npm run bench` found of the gateway, as docs/performance.md has it: others repeat it. */
export interface MeasuredFigures {
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Without what makers put around a name. */
  readonly machine: string;
  /** CPU of the gateway. */
  readonly requestMicros: number;
  readonly eventMicros: number;
  /** The same by that of bare Fastify. */
  readonly requestRatio: number;
  readonly eventRatio: number;
  readonly mebibytes: number;
  /** Those of bare Fastify. */
  readonly floorMebibytes: number;
}

/** `text` is that page. Throws where a figure is missing: the tables of test/harness/bench/tables.ts have changed. */
export function measuredFigures(text = readDocument('docs/performance.md')): MeasuredFigures {
  const rows = tableRows(text, 'target', 'JSON request', 'event, burst', 'event, paced');
  const cellsOf = (target: string): readonly string[] => rows.find(([name]) => name === target) ?? [];
  const [, request, , event, micros = ''] = cellsOf('gateway');
  const [requestMicros, , eventMicros] = micros.split(' / ');
  const [, date, machine] = /^Measured on (\S+): Node [\d.]+, (\d+ × [^,]+),/m.exec(text) ?? [];
  if (date === undefined || machine === undefined)
    throw new Error('docs/performance.md does not say when and where it was measured');
  return {
    date,
    machine: machine.replaceAll(/\(R\)|\(TM\)| Processor/g, ''),
    requestMicros: numberIn(requestMicros),
    eventMicros: numberIn(eventMicros),
    requestRatio: numberIn(request),
    eventRatio: numberIn(event),
    mebibytes: numberIn(cellsOf('gateway').at(-1)),
    floorMebibytes: numberIn(cellsOf('bare Fastify').at(-1)),
  };
}

/** The first number of a cell: what follows is its error. */
function numberIn(cell = ''): number {
  const value = Number.parseFloat(cell);
  if (Number.isNaN(value)) throw new Error(`docs/performance.md has no figure in the cell "${cell}"`);
  return value;
}
