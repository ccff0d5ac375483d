/** Sends the mixture at a steady rate from a process of its own, with a pause whenever it is told to. */
import { Agent } from 'undici';
import type { Ended } from './requests.ts';
import { endedOf, kindOf, sendOne } from './requests.ts';

/** To the child: whom to ask and how often, or to pause, or to go on. */
export type SoakOrder =
  | {
      readonly kind: 'start';
      readonly url: string;
      readonly keys: readonly string[];
      readonly perSecond: number;
    }
  | { readonly kind: 'pause' }
  | { readonly kind: 'go-on' };

/** From the child: what ended since the last time, and `quiet` once nothing is open after a pause. */
export type SoakReport =
  | { readonly kind: 'ended'; readonly ended: readonly Ended[] }
  | { readonly kind: 'quiet'; readonly skipped: number };

const tickMs = 10;
/** Requests that may be open at once; one that is due beyond them is not sent, and counted. */
const maxOpen = 300;

let ended: Ended[] = [];
let [next, open, skipped, debt] = [0, 0, 0, 0];
let isPaused = true;
let lastTickMs = performance.now();
let target: Extract<SoakOrder, { kind: 'start' }> | undefined;
let agent = newAgent();

function newAgent(): Agent {
  return new Agent({ connections: 256, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });
}

function tell(report: SoakReport): void {
  process.send?.(report);
}

async function send(url: string, keys: readonly string[]): Promise<void> {
  open += 1;
  const index = next++;
  const key = keys[index % keys.length] ?? '';
  ended.push(endedOf(await sendOne({ url, key, kind: kindOf(index), index, dispatcher: agent })));
  open -= 1;
  tellWhenQuiet();
}

function tellWhenQuiet(): void {
  if (!isPaused || open > 0) return;
  tell({ kind: 'ended', ended });
  ended = [];
  // Connections of the load are memory of the gateway too.
  const old = agent;
  agent = newAgent();
  void old.close().then(() => tell({ kind: 'quiet', skipped }));
}

setInterval(() => {
  const nowMs = performance.now();
  const passedMs = nowMs - lastTickMs;
  lastTickMs = nowMs;
  if (isPaused || target === undefined) return;
  debt += (passedMs / 1000) * target.perSecond;
  for (; debt >= 1; debt -= 1) {
    if (open < maxOpen) void send(target.url, target.keys);
    else skipped += 1;
  }
}, tickMs);

process.on('message', (order: SoakOrder) => {
  if (order.kind === 'start') target = order;
  isPaused = order.kind === 'pause';
  debt = 0;
  if (isPaused) tellWhenQuiet();
});
process.on('disconnect', () => process.exit());
