import { readDocument, tableRows } from './documents.ts';

/** What `npm run bench` found of the gateway, as docs/performance.md has it: others repeat it. */
export interface MeasuredFigures {
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Without what makers put around a name. */
  readonly machine: string;
  /** CPU of the gateway where the vendor speaks TLS, as all but those in the cluster do. */
  readonly requestMicros: number;
  readonly eventMicros: number;
  /** That of the gateway by that of bare Fastify, both without TLS. */
  readonly requestRatio: number;
  readonly eventRatio: number;
  readonly mebibytes: number;
  /** Those of bare Fastify. */
  readonly floorMebibytes: number;
}

/** `text` is that page. Throws where a figure is missing: the tables of test/harness/bench/tables.ts have changed. */
export function measuredFigures(text = readDocument('docs/performance.md')): MeasuredFigures {
  const rowsOf = (part: string) => tableRows(part, 'target', 'JSON request', 'event, burst', 'event, paced');
  const rows = [...rowsOf(text), ...rowsOf(text.slice(text.indexOf('## With TLS to the vendor')))];
  const cellsOf = (target: string): readonly string[] => rows.find(([name]) => name === target) ?? [];
  const [, request, , event] = cellsOf('gateway');
  const [requestMicros, , eventMicros] = (cellsOf('gateway, TLS to the vendor')[4] ?? '').split(' / ');
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
