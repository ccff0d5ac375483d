import type { Reporter, TestModule } from 'vitest/node';
import type { Cell } from './cell.ts';

/** A line for each client and vendor, a column for each scenario. */
type Table = Map<string, Map<string, { passed: number; all: number; skipped: number }>>;

/** Prints the matrix: `+` where every way to the vendor worked, else how many of them did; `s` for skipped. */
export default class TableReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const table: Table = new Map();
    const scenarios = new Set<string>();
    const versions = new Map<string, string>();
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { cell } = test.meta();
        if (cell === undefined) continue;
        scenarios.add(cell.scenario);
        versions.set(cell.client, cell.versions);
        count(table, cell, test.result().state);
      }
    }
    if (table.size === 0) return;
    const made = [...versions].map(([client, packages]) => `${client}: ${packages}`);
    process.stdout.write(`\n${drawn(table, [...scenarios])}\n\n${made.join('\n')}\n`);
  }
}

function count(table: Table, { client, vendor, scenario }: Cell, state: string): void {
  const name = `${client}\t${vendor}`;
  const row = table.get(name) ?? new Map();
  table.set(name, row);
  const seen = row.get(scenario) ?? { passed: 0, all: 0, skipped: 0 };
  row.set(scenario, seen);
  seen.all += 1;
  if (state === 'passed') seen.passed += 1;
  if (state === 'skipped') seen.skipped += 1;
}

function drawn(table: Table, scenarios: readonly string[]): string {
  const names = [...table.keys()].map((name) => name.split('\t') as [string, string]);
  const width = Math.max(...names.map(([client]) => client.length)) + 2;
  const vendorWidth = Math.max(...names.map(([, vendor]) => vendor.length)) + 2;
  let last = '';
  const lines = names.map(([client, vendor]) => {
    const row = table.get(`${client}\t${vendor}`);
    const cells = scenarios.map((scenario) => mark(row?.get(scenario)).padEnd(scenario.length + 1));
    const label = client === last ? '' : client;
    last = client;
    return `${label.padEnd(width)}${vendor.padEnd(vendorWidth)}${cells.join('')}`.trimEnd();
  });
  const head = scenarios.map((scenario) => `${scenario} `).join('');
  return [`${' '.repeat(width + vendorWidth)}${head}`.trimEnd(), ...lines].join('\n');
}

function mark(seen: { passed: number; all: number; skipped: number } | undefined): string {
  if (seen === undefined) return '';
  if (seen.skipped === seen.all) return 's';
  return seen.passed === seen.all ? '+' : `${seen.passed}/${seen.all}`;
}
