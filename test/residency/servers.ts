import type {
  UpstreamCall,
  UpstreamControl,
  UpstreamListener,
  UpstreamTransport,
} from '../../src/chat/ports.ts';
import type { Random } from '../harness/measure/random.ts';
import { anthropicAnswer, anthropicStream } from '../harness/vendors/anthropic-wire.ts';
import { openAiAnswer, openAiError, openAiStream } from '../harness/vendors/openai-wire.ts';

/** The servers of the world: where each one stands is a fact of this file, not an opinion of the gateway. */

/** Regions in which a user's own server may stand. */
export const regions = {
  'ap-south-1': 'india',
  centralindia: 'india',
  india: 'india',
  'private-mumbai': 'india',
  'eu-west-1': 'outside',
  'us-east-1': 'outside',
  indiana: 'outside',
  'ap-southeast-1': 'outside',
} as const satisfies Readonly<Record<string, 'india' | 'outside'>>;

export type Region = keyof typeof regions;

export interface Server {
  readonly origin: string;
  readonly india: boolean;
  readonly anthropic: boolean;
  fault: Fault;
}

/** What a server does with the next requests. */
export const faults = [
  'none',
  '429',
  '500',
  '400',
  '401',
  'reset',
  'garbage',
  'empty',
  'cut',
  'json',
] as const;
export type Fault = (typeof faults)[number];

/** A prompt carries what its request asked for: these must stay in India. */
export const indiaPrompt = 'prompt-india-';

const vendors: readonly Omit<Server, 'fault'>[] = [
  { origin: 'https://api.openai.com', india: false, anthropic: false },
  { origin: 'https://api.anthropic.com', india: false, anthropic: true },
  { origin: 'https://api.together.ai', india: false, anthropic: false },
  { origin: 'https://api.together.xyz', india: false, anthropic: false },
  { origin: 'https://api.sarvam.ai', india: true, anthropic: false },
];

/** All servers, and the transport that leads to them. A byte in the wrong place is remembered, not thrown. */
export class Servers implements UpstreamTransport {
  readonly violations: string[] = [];
  readonly #byOrigin = new Map<string, Server>();
  callsIn = 0;
  callsOutside = 0;
  indiaPromptsIn = 0;

  constructor(ownServers: readonly { readonly origin: string; readonly region: Region }[]) {
    for (const vendor of vendors) this.#byOrigin.set(vendor.origin, { ...vendor, fault: 'none' });
    for (const { origin, region } of ownServers) {
      this.#byOrigin.set(origin, {
        origin,
        india: regions[region] === 'india',
        anthropic: false,
        fault: 'none',
      });
    }
  }

  all(): Server[] {
    return [...this.#byOrigin.values()];
  }

  /** Where the text of an answer was made. */
  isIndian(origin: string): boolean {
    return this.#byOrigin.get(origin)?.india === true;
  }

  send(call: UpstreamCall, listener: UpstreamListener): UpstreamControl {
    const server = this.#byOrigin.get(call.origin);
    if (server === undefined) throw new Error(`nobody listens at ${call.origin}`);
    this.#judge(call, server);
    let over = false;
    const say = (tell: () => void): void => {
      if (!over) tell();
    };
    queueMicrotask(() => answer(server, call, listener, say));
    return {
      connectionName: null,
      isSent: true,
      addressClass: 'public',
      pause: () => {},
      resume: () => {},
      abort: () => {
        if (over) return;
        over = true;
        queueMicrotask(() => listener.onFailure({ kind: 'aborted', message: 'aborted' }));
      },
    };
  }

  #judge(call: UpstreamCall, server: Server): void {
    const sent = `${call.path} ${JSON.stringify(call.headers)} ${call.body}`;
    const isIndia = sent.includes(indiaPrompt);
    if (server.india) this.callsIn += 1;
    else this.callsOutside += 1;
    if (isIndia && server.india) this.indiaPromptsIn += 1;
    if (isIndia && !server.india) this.violations.push(`an India prompt reached ${call.origin}: ${sent}`);
    // Prompts that are shared by requests of both kinds tell nothing; the call itself does.
    if (call.residencyBound === 'india' && !server.india) {
      this.violations.push(`an India call reached ${call.origin}: ${sent}`);
    }
  }
}

const statuses: Partial<Record<Fault, number>> = { '429': 429, '500': 503, '400': 400, '401': 401 };

function answer(
  { fault, anthropic, origin }: Server,
  { body }: UpstreamCall,
  listener: UpstreamListener,
  say: (tell: () => void) => void,
): void {
  const request = JSON.parse(String(body)) as { readonly model: string; readonly stream?: boolean };
  const text = { text: [`made at ${origin} .`] };
  const tell = (status: number, type: string, parts: readonly string[]): void => {
    say(() => listener.onHead({ status, contentType: type, headers: { 'content-type': type } }));
    for (const part of parts) say(() => listener.onData(Buffer.from(part)));
    say(() => listener.onEnd());
  };
  const status = statuses[fault];
  const events = anthropic ? anthropicStream(request.model, text) : openAiStream(request.model, text);
  const whole = JSON.stringify(
    anthropic ? anthropicAnswer(request.model, text) : openAiAnswer(request.model, text),
  );
  const streams = request.stream === true;
  if (status !== undefined) tell(status, 'application/json', [JSON.stringify(openAiError(status))]);
  else if (fault === 'reset') say(() => listener.onFailure({ kind: 'reset', message: 'reset' }));
  else if (fault === 'garbage') tell(200, 'text/html', ['<p>hello</p>']);
  else if (fault === 'empty') tell(200, 'application/json', []);
  else if (fault === 'cut' && streams) tell(200, 'text/event-stream', events.slice(0, -2));
  else if (fault === 'cut') tell(200, 'application/json', [whole.slice(0, -9)]);
  else if (streams && fault !== 'json') tell(200, 'text/event-stream', events);
  else tell(200, 'application/json', [whole]);
}

/** Mostly healthy, so that most requests get far. */
export function nextFault(random: Random): Fault {
  return random.chance(0.5) ? 'none' : random.pick(faults);
}
