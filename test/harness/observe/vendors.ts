import type { FakeVendor } from '../vendors/fake-vendor.ts';
import { startFakeVendor } from '../vendors/fake-vendor.ts';
import type { AnswerContent } from '../vendors/openai-wire.ts';
import type { VendorName, VendorPack } from '../vendors/vendor-pack.ts';
import { startVendorPack, vendorNames } from '../vendors/vendor-pack.ts';
import {
  answer,
  failure,
  hang,
  longStream,
  reset,
  tokensThen,
  truncatedJson,
} from '../vendors/vendor-plans.ts';
import type { ReceivedRequest, Script, Step } from '../vendors/vendor-reply.ts';

/** Vendors that answer at their own pace, and fail when a prompt asks for it by the name of a fault. */

/** One failed answer before its first token: the gateway goes on to the next candidate, if there is one. */
export interface InjectedFault {
  readonly vendor: VendorName;
  readonly fault: FaultName;
  /** The whole request as the vendor got it. */
  readonly bodyText: string;
}

export interface DemoVendors {
  readonly pack: VendorPack;
  readonly selfHosted: FakeVendor;
  /** Every fault so far, in order. */
  readonly injected: readonly InjectedFault[];
  /** From now on a vendor fails whatever it is asked, or recovers. */
  setDown(vendor: VendorName, isDown: boolean): void;
  /** Empties all ledgers, which nobody may be reading. */
  forget(): void;
  close(): Promise<void>;
}

/** Failures and the reason the gateway gives for a fallback because of them. */
export const faults = {
  limited: { script: failure(429, { 'retry-after': '7' }), reason: 'rate-limited' },
  broken: { script: failure(503), reason: 'upstream-failed' },
  reset: { script: reset, reason: 'unreachable' },
  silent: { script: hang, reason: 'timed-out' },
  garbage: { script: truncatedJson, reason: 'unreadable' },
  expired: { script: failure(401), reason: 'key-rejected' },
} as const satisfies Readonly<Record<string, { script: Script; reason: string }>>;
export type FaultName = keyof typeof faults;

/** How a prompt asks a vendor for a fault; `all` asks every vendor. */
export const askFor = (fault: FaultName, vendor: VendorName | 'all') => `<${fault} at ${vendor}>`;
/** Asks for a stream that breaks after some tokens, one too fast for its reader, one that never ends, one without usage. */
export const askForCut = '<cut>';
export const askForFlood = '<flood>';
export const askForEndless = '<endless>';
/** Asks for no answer at all, which is no fault where the client does not wait for one. */
export const askForSilence = '<silence>';
export const askForNoUsage = '<no usage>';

interface Pace {
  /** Median time to the first token. */
  readonly firstMs: number;
  /** Between two tokens. */
  readonly gapMs: number;
}

const paces: Readonly<Record<VendorName, Pace>> = {
  openai: { firstMs: 180, gapMs: 9 },
  anthropic: { firstMs: 320, gapMs: 13 },
  together: { firstMs: 90, gapMs: 5 },
  sarvam: { firstMs: 240, gapMs: 11 },
};
const selfHostedPace: Pace = { firstMs: 420, gapMs: 20 };
/** Spread of the time to the first token, as the sigma of a log-normal distribution. */
const SPREAD = 0.45;

const tokensBeforeCut = 12;
const endlessTokens = 10_000;
const flood = { events: 500, bytesPerEvent: 16 * 1024 };

/** A standard normal random number (Box and Muller), without the far ends, which would look like faults. */
function gauss(): number {
  const value = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  return Math.max(-2, Math.min(2, value));
}

/** The same answer at a vendor's pace: all at once after the same total time when it is no stream. */
function paced(script: Script, { firstMs, gapMs }: Pace): Script {
  return (request) => {
    const reply = script(request);
    const first: Step = { waitMs: firstMs * Math.exp(SPREAD * gauss()) };
    const steps = [...reply.body];
    const body = request.stream ? steps.flatMap((step) => [step, { waitMs: gapMs }]) : steps;
    return { ...reply, body: [first, ...body] };
  };
}

/** Some sentences of varying length, with the usage that a vendor of the dialect would report. */
function someContent(request: ReceivedRequest): AnswerContent {
  const count = 15 + Math.floor(Math.random() * 50);
  const input = 200 + Math.floor(Math.random() * 1_800);
  const cached = Math.random() < 0.3 ? Math.floor(input / 2) : 0;
  const usage =
    request.dialect === 'anthropic'
      ? { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: count }
      : {
          prompt_tokens: input,
          completion_tokens: count,
          total_tokens: input + count,
          prompt_tokens_details: { cached_tokens: cached },
          completion_tokens_details: { reasoning_tokens: Math.floor(count / 4) },
        };
  return { text: Array.from({ length: count }, (_, index) => `word${index} `), usage };
}

const healthy: Script = (request) => answer(someContent(request))(request);

/** Together tells the usage of a stream without being asked. */
const healthyUnasked: Script = (request) =>
  healthy({ ...request, body: { ...request.body, stream_options: { include_usage: true } } });

const healthyAt = (name: VendorName) => paced(name === 'together' ? healthyUnasked : healthy, paces[name]);

/** What a vendor does when a prompt asks for it. */
function teach(vendor: FakeVendor, pace: Pace): void {
  vendor.when(askForCut, paced(tokensThen(tokensBeforeCut, 'reset'), pace));
  vendor.when(askForEndless, paced(tokensThen(endlessTokens, 'hang'), pace));
  vendor.when(askForSilence, hang);
  vendor.when(askForFlood, longStream(flood.events, flood.bytesPerEvent));
  vendor.when(askForNoUsage, paced(answer({ usage: null }), pace));
}

/** Starts one vendor per provider on free loopback ports. */
export async function startDemoVendors(): Promise<DemoVendors> {
  const [pack, selfHosted] = await Promise.all([startVendorPack(), startFakeVendor()]);
  const injected: InjectedFault[] = [];
  const failing = (vendor: VendorName, fault: FaultName): Script => {
    return (request) => {
      injected.push({ vendor, fault, bodyText: request.bodyText });
      return faults[fault].script(request);
    };
  };
  const down = new Map<VendorName, Script>(vendorNames.map((name) => [name, failing(name, 'broken')]));
  for (const name of vendorNames) {
    pack[name].always(healthyAt(name));
    teach(pack[name], paces[name]);
    for (const fault of Object.keys(faults) as FaultName[])
      for (const whom of [name, 'all'] as const) pack[name].when(askFor(fault, whom), failing(name, fault));
  }
  selfHosted.always(paced(healthy, selfHostedPace));
  teach(selfHosted, selfHostedPace);
  return {
    pack,
    selfHosted,
    injected,
    setDown: (name, isDown) => {
      pack[name].always((isDown ? down.get(name) : undefined) ?? healthyAt(name));
    },
    forget: () => {
      injected.length = 0;
      for (const vendor of [selfHosted, ...vendorNames.map((name) => pack[name])]) vendor.ledger.length = 0;
    },
    close: async () => {
      await Promise.all([pack.close(), selfHosted.close()]);
    },
  };
}
