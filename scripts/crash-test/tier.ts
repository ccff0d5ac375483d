import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { addVendorKeys, CrashTestError, deleteKey } from './account.ts';
import type { Gateway } from './client.ts';
import type { Fault } from './faults.ts';
import { faults, refusalBody } from './faults.ts';
import type { Judgement } from './judge.ts';
import { fail, judge } from './judge.ts';
import type { Result } from './run.ts';
import { eachFault, limitsOf, sendChat, usualTimeoutSeconds } from './run.ts';
import type { CrashVendor } from './vendor.ts';

export const vendors = ['openai', 'anthropic', 'together', 'sarvam'] as const;

export interface TierRun {
  readonly gateway: Gateway;
  readonly vendor: CrashVendor;
  /** `gw/balanced` and the like. */
  readonly mode: string;
  readonly idleSeconds: number;
  /** How long the first candidate is down. */
  readonly outageSeconds: number;
}

/** How soon a candidate that is healthy again must be used again. */
const recoveryMs = 30_000;
const betweenMs = 500;
const probeLimitMs = 15_000;

/** Keys for the vendors whose addresses lead here; `work` runs with them, and they are gone afterwards. */
export async function runTier(run: TierRun): Promise<Result[]> {
  const added = await addVendorKeys(run.gateway, vendors);
  try {
    const here: string[] = [];
    for (const name of vendors) if (await leadsHere(run, name)) here.push(name);
    if (here.length < 2) throw new CrashTestError(howToPoint(run, here));
    const flapped = await playFlapping(run);
    const chosen = faults.filter((fault) => !fault.unreachable);
    return [flapped, ...(await eachFault(chosen, (fault) => playTier(run, fault)))];
  } finally {
    for (const id of added) await deleteKey(run.gateway, id);
  }
}

function howToPoint(run: TierRun, here: readonly string[]): string {
  const settings = vendors.map(
    (name) => `GW_${name.toUpperCase()}_BASE_URL=http://VENDOR-HOST:${run.vendor.port}/${name}`,
  );
  return [
    `--tier needs at least two vendors whose addresses lead to this command; found: ${here.join(', ') || 'none'}.`,
    'Start the gateway with these settings, and name the port with --vendor-port:',
    ...settings.map((setting) => `  ${setting}`),
  ].join('\n');
}

/** Asked for a model that no vendor has: where the address is a real vendor's, that costs nothing. */
async function leadsHere(run: TierRun, name: string): Promise<boolean> {
  const nonce = randomUUID();
  const override = `${name}:crash-test`;
  const ask = {
    model: run.mode,
    override,
    stream: false,
    timeoutSeconds: usualTimeoutSeconds,
    limitMs: probeLimitMs,
  };
  await sendChat(run.gateway, nonce, ask);
  return run.vendor.calls(nonce)[0]?.vendor === name;
}

/** In the words of the table: what a tier must do, where an override has nobody to turn to. */
function requiredOfTier(fault: Fault): string {
  if (fault.id === 'no-done') return fault.required;
  return breaksLater(fault) ? fault.required : 'the next candidate’s whole answer, one call to the first';
}

/** After the first token nobody else may go on with the answer. */
function breaksLater(fault: Fault): boolean {
  return fault.required.includes('then an error event');
}

async function playTier(run: TierRun, fault: Fault): Promise<Result> {
  const nonce = randomUUID();
  run.vendor.plan(nonce, fault.play);
  const { timeoutSeconds, limitMs } = limitsOf(fault, run.idleSeconds);
  const ask = {
    model: run.mode,
    stream: fault.stream,
    timeoutSeconds,
    limitMs: limitMs + timeoutSeconds * 1000,
  };
  const answer = await sendChat(run.gateway, nonce, ask);
  const calls = run.vendor.calls(nonce);
  const toFirst = calls.filter(({ vendor }) => vendor === calls[0]?.vendor).length;
  const { verdict, happened } = judgeTier(fault, judge(fault, answer, toFirst, true), calls.length);
  return {
    id: `tier-${fault.id}`,
    fault: `first candidate: ${fault.fault}`,
    required: requiredOfTier(fault),
    verdict,
    happened,
  };
}

function judgeTier(fault: Fault, judgement: Judgement, calls: number): Judgement {
  if (calls === 0) return fail('no candidate of the tier was asked');
  if (judgement.verdict === 'safe' && !breaksLater(fault))
    return fail(`${judgement.happened}, although a healthy candidate was left`);
  if (breaksLater(fault) && calls > 1) return fail('a second candidate was asked after the first token');
  if (judgement.verdict !== 'pass') return judgement;
  return { verdict: 'pass', happened: calls > 1 ? 'the next candidate’s whole answer' : judgement.happened };
}

/** One healthy request; null when it was served whole, else what happened. */
async function trouble(run: TierRun, nonce: string): Promise<string | null> {
  const plain: Fault = { id: 'tier-flapping', fault: '', required: '', stream: false, play: () => {} };
  const limits = { timeoutSeconds: usualTimeoutSeconds, limitMs: limitsOf(plain, 0).limitMs };
  const answer = await sendChat(run.gateway, nonce, { model: run.mode, stream: false, ...limits });
  const { verdict, happened } = judge(plain, answer, 1, true);
  return verdict === 'pass' ? null : happened;
}

/** The first candidate is down for a while: the others serve meanwhile, and it is used again soon after. */
async function playFlapping(run: TierRun): Promise<Result> {
  const fault = {
    id: 'tier-flapping',
    fault: `first candidate: 503 for ${run.outageSeconds} s, then healthy`,
    required: `no request fails, and it is used again within ${recoveryMs / 1000} s`,
  };
  const nonce = randomUUID();
  const before = await trouble(run, nonce);
  const first = run.vendor.calls(nonce)[0]?.vendor;
  if (first === undefined || before !== null)
    return { ...fault, ...fail(before ?? 'no candidate was asked') };
  const refuse = { 'content-type': 'application/json' };
  run.vendor.outage(first, (wire) => wire.answer(503, refuse, refusalBody(503)));
  const troubles = await troublesFor(run, run.outageSeconds * 1000, () => false);
  run.vendor.outage(first, undefined);
  const healedAtMs = performance.now();
  let isBack = false;
  const later = await troublesFor(run, recoveryMs, (asked) => {
    isBack = run.vendor.calls(asked)[0]?.vendor === first;
    return isBack;
  });
  const seconds = ((performance.now() - healedAtMs) / 1000).toFixed(1);
  const [failed] = [...troubles, ...later];
  if (failed !== undefined) return { ...fault, ...fail(failed) };
  if (!isBack) return { ...fault, ...fail(`${first} was not used again within ${seconds} s`) };
  return { ...fault, verdict: 'pass', happened: `all served; ${first} was used again after ${seconds} s` };
}

/** Asks again and again for some time, or until `isOver`; what went wrong. */
async function troublesFor(
  run: TierRun,
  forMs: number,
  isOver: (nonce: string) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  const deadline = performance.now() + forMs;
  while (performance.now() < deadline) {
    const nonce = randomUUID();
    const happened = await trouble(run, nonce);
    if (happened !== null) found.push(happened);
    if (isOver(nonce)) break;
    await pause(betweenMs);
  }
  return found;
}
