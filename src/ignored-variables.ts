import { environmentSchema, fileVariants } from './environment.ts';

/** A variable that looks like a setting and is none. */
export interface IgnoredVariable {
  readonly name: string;
  /** The setting that is probably meant. */
  readonly nearest: string | null;
}

const prefix = 'GW_';
const known: readonly string[] = [
  ...Object.keys(environmentSchema.shape),
  ...fileVariants.map((name) => `${name}_FILE`),
];

/**
 * What the kubelet sets for a Service whose name begins with `gw`:
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const serviceLink = /_SERVICE_HOST$|_SERVICE_PORT(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/;
/** What it has there for the first port; a number under such a name is somebody's own. */
const linkedPort = /^(?:tcp|udp|sctp):\/\//;

const isServiceLink = (name: string, value: string): boolean =>
  serviceLink.test(name) || (name.endsWith('_PORT') && linkedPort.test(value));

/** More is another word. */
const mostEdits = 3;

/** How many letters are to be put in, left out or changed (Levenshtein). */
function editsBetween(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...one].entries()) {
    const line = [row + 1];
    for (let column = 0; column < other.length; column += 1) {
      const [left = 0, up = 0, diagonal = 0] = [line[column], above[column + 1], above[column]];
      line.push(Math.min(left + 1, up + 1, diagonal + (letter === other[column] ? 0 : 1)));
    }
    above = line;
  }
  return above[other.length] ?? 0;
}

/** Without the prefix, which not all settings have: `GW_PORT` is nearer to `PORT` than to `GW_HOST`. */
const bare = (name: string): string => (name.startsWith(prefix) ? name.slice(prefix.length) : name);

function nearestTo(name: string): string | null {
  const wanted = bare(name);
  let fewest = Math.min(mostEdits, Math.floor(wanted.length / 2)) + 1;
  let nearest: string | null = null;
  for (const candidate of known) {
    if (Math.abs(bare(candidate).length - wanted.length) >= fewest) continue;
    const edits = editsBetween(wanted, bare(candidate));
    if (edits < fewest) [fewest, nearest] = [edits, candidate];
  }
  return nearest;
}

/** Variables with our prefix that nothing reads: a setting that is misspelt would be a default in silence. */
export function ignoredVariables(environment: NodeJS.ProcessEnv): readonly IgnoredVariable[] {
  return Object.entries(environment)
    .filter(([name, value = '']) => {
      return name.startsWith(prefix) && !known.includes(name) && value !== '' && !isServiceLink(name, value);
    })
    .map(([name]) => ({ name, nearest: nearestTo(name) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
