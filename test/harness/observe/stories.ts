import type { FaultName } from './vendors.ts';
import { askFor, askForCut, askForEndless, askForFlood, askForNoUsage, askForSilence } from './vendors.ts';

/** The kinds of request that demo load is made of. */

export type StreamEnd = 'complete' | 'upstream_error' | 'client_abort';

export interface Story {
  readonly name: string;
  /** How many of them are in one round of all stories. */
  readonly often: number;
  readonly model: 'gw/cheap' | 'gw/balanced' | 'gw/premium';
  readonly stream: boolean;
  /** Said in the prompt, for vendors to act by. */
  readonly say?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How the client takes its answer: as fast as it can, late, not to its end, or not at all. */
  readonly reader?: 'slow' | 'leaves' | 'gives up';
  /** One of a few prompts that come again, so that a cache can help. */
  readonly repeated?: boolean;
  /** How its stream ends; null where none is opened. `complete` for other streams. */
  readonly end?: StreamEnd | null;
}

/** Goes from a silent vendor to the next one; longer than the slowest of the others takes. */
const impatient = { 'x-gateway-timeout': '2' };
const cached = { 'x-gateway-cache': 'true' };
const override = (target: string) => ({ 'x-gateway-override-model': target });

/** The former name of the service in the tables of demo load, so that the use of old names shows. */
export const legacyName = 'oldname';

const healthy: readonly Story[] = [
  { name: 'cheap stream', often: 12, model: 'gw/cheap', stream: true },
  { name: 'cheap', often: 6, model: 'gw/cheap', stream: false },
  { name: 'balanced stream', often: 12, model: 'gw/balanced', stream: true },
  { name: 'balanced', often: 5, model: 'gw/balanced', stream: false },
  { name: 'premium stream', often: 10, model: 'gw/premium', stream: true },
  { name: 'premium', often: 3, model: 'gw/premium', stream: false },
  { name: 'question again', often: 9, model: 'gw/cheap', stream: false, repeated: true, headers: cached },
  {
    name: 'question again, streamed',
    often: 6,
    model: 'gw/balanced',
    stream: true,
    repeated: true,
    headers: cached,
  },
  {
    name: 'stays in India',
    often: 4,
    model: 'gw/balanced',
    stream: true,
    headers: { 'x-gateway-residency': 'india' },
  },
  {
    name: 'own model',
    often: 4,
    model: 'gw/balanced',
    stream: true,
    headers: override('self_hosted:llama-of-ours'),
  },
  {
    name: 'no price known',
    often: 1,
    model: 'gw/balanced',
    stream: false,
    headers: override('openai:gpt-of-tomorrow'),
  },
  { name: 'no usage told', often: 1, model: 'gw/cheap', stream: false, say: askForNoUsage },
  {
    name: 'old header',
    often: 1,
    model: 'gw/cheap',
    stream: true,
    headers: { [`x-${legacyName}-timeout`]: '30' },
  },
];

function faulty(fault: FaultName, often: number, more: Partial<Story> = {}): readonly Story[] {
  return [
    { name: `openai ${fault}`, often, model: 'gw/balanced', stream: false, say: askFor(fault, 'openai') },
    {
      name: `anthropic ${fault}`,
      often,
      model: 'gw/premium',
      stream: true,
      say: askFor(fault, 'anthropic'),
    },
    { name: `cheap ${fault}`, often, model: 'gw/cheap', stream: true, say: askFor(fault, 'openai') },
  ].map((story) => ({ ...story, ...more }) as Story);
}

const failing: readonly Story[] = [
  ...faulty('limited', 2),
  ...faulty('broken', 2),
  ...faulty('reset', 1),
  ...faulty('silent', 1, { headers: impatient }),
  ...faulty('garbage', 1, { stream: false }),
  ...faulty('expired', 1),
  {
    name: 'all limited',
    often: 1,
    model: 'gw/balanced',
    stream: false,
    say: askFor('limited', 'all'),
    end: null,
  },
  {
    name: 'all broken',
    often: 1,
    model: 'gw/premium',
    stream: true,
    say: askFor('broken', 'all'),
    end: null,
  },
  {
    name: 'cut stream',
    often: 2,
    model: 'gw/cheap',
    stream: true,
    say: askForCut,
    end: 'upstream_error',
  },
  {
    name: 'client leaves',
    often: 2,
    model: 'gw/balanced',
    stream: true,
    say: askForEndless,
    reader: 'leaves',
    end: 'client_abort',
  },
  {
    name: 'client gives up',
    often: 1,
    model: 'gw/balanced',
    stream: true,
    say: askForSilence,
    reader: 'gives up',
    end: null,
  },
  { name: 'slow client', often: 1, model: 'gw/cheap', stream: true, say: askForFlood, reader: 'slow' },
];

/** One round of load, in no order. */
export const stories: readonly Story[] = [...healthy, ...failing];
