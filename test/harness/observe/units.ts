/** Numbers as people read them, for Grafana's units. */

const SIGNIFICANT_DIGITS = 3;

/** Steps of a scale, largest first: the value is divided by the first that it reaches. */
type Steps = readonly (readonly [size: number, suffix: string])[];

const decimal: Steps = [
  [1e9, ' G'],
  [1e6, ' M'],
  [1e3, ' k'],
  [1, ''],
];
const binary: Steps = [
  [1024 ** 3, ' GiB'],
  [1024 ** 2, ' MiB'],
  [1024, ' KiB'],
  [1, ' B'],
];
const time: Steps = [
  [86_400, ' d'],
  [3_600, ' h'],
  [60, ' min'],
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
];

/** A short text of a value in a unit of Grafana; of a unit that is not known here, the number alone. */
export function writeValue(value: number, unit = 'short'): string {
  if (!Number.isFinite(value)) return '–';
  if (unit === 'percentunit') return `${digits(value * 100)} %`;
  if (unit === 'percent') return `${digits(value)} %`;
  if (unit === 'currencyUSD') return `$${scaled(value, decimal)}`;
  if (unit === 's') return scaled(value, time);
  if (unit === 'bytes') return scaled(value, binary);
  if (unit === 'reqps' || unit === 'ops') return `${scaled(value, decimal)} /s`;
  return scaled(value, decimal);
}

function scaled(value: number, steps: Steps): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  const [divisor, suffix] = steps.find(([least]) => size >= least) ?? steps.at(-1) ?? [1, ''];
  return digits(value / divisor) + suffix;
}

/** At most three digits that matter, without an exponent. */
function digits(value: number): string {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(SIGNIFICANT_DIGITS)));
}

/** Time of day in UTC. */
export function writeClock(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().slice(11, 19);
}
