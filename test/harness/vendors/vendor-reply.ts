import { gzipSync } from 'node:zlib';

/** The two wire formats a vendor may speak; decided by the path that was called. */
export type Dialect = 'openai' | 'anthropic';

/** One request as the vendor received it, and what became of its answer. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  /** Lower case names; repeated headers joined as Node does. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bodyText: string;
  /** The parsed JSON body, or an empty object when it was not JSON. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly dialect: Dialect;
  readonly stream: boolean;
  /** Monotonic milliseconds when the body was complete. */
  readonly receivedAtMs: number;
  /** Body bytes handed to the socket so far. */
  bytesSent: number;
  /** True once the scripted answer was written to its end. */
  finished: boolean;
  /** Monotonic milliseconds when the peer closed before the answer was finished, else null. */
  peerClosedAtMs: number | null;
  /** Resolves when the peer closes early (`true`) or the answer ends first (`false`). */
  readonly closedEarly: Promise<boolean>;
}

/** A point of the answer at which the vendor waits until the test opens it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** Makes a closed gate. */
export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** One step of an answer's body: bytes, a pause, or a gate. */
export type Step = string | Buffer | { readonly waitMs: number } | Gate;

/** How the answer ends: properly, not at all, by TCP reset, or by FIN in the middle of the HTTP body. */
export type Ending = 'complete' | 'hang' | 'reset' | 'fin';

/** What the vendor does with one request. `status: null` sends nothing before `ending`. */
export interface Reply {
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Iterable<Step>;
  readonly ending: Ending;
  /** Nothing is sent, not even the status, until this gate opens. */
  readonly before?: Gate;
  /** Write the body straight to the socket, status line included. */
  readonly raw?: boolean;
}

/** Decides the reply from the request; all plans of `vendor-plans.ts` are scripts. */
export type Script = (request: ReceivedRequest) => Reply;

/** Where the body of a reply is cut into separate TCP writes, as byte offsets. */
export function splitAt(script: Script, cuts: readonly number[]): Script {
  return (request) => {
    const reply = script(request);
    const whole = Buffer.concat(
      [...reply.body].filter((step) => typeof step === 'string' || Buffer.isBuffer(step)).map(toBuffer),
    );
    const edges = [0, ...cuts.filter((cut) => cut > 0 && cut < whole.length), whole.length];
    const pieces: Step[] = [];
    for (let index = 1; index < edges.length; index += 1) {
      pieces.push(whole.subarray(edges[index - 1], edges[index]), { waitMs: 0 });
    }
    return { ...reply, body: pieces };
  };
}

/** The same answer, compressed and labelled so, whether or not the caller asked for it. */
export function gzipped(script: Script): Script {
  return (request) => {
    const reply = script(request);
    const whole = Buffer.concat(
      [...reply.body].filter((step) => typeof step === 'string' || Buffer.isBuffer(step)).map(toBuffer),
    );
    return { ...reply, headers: { ...reply.headers, 'content-encoding': 'gzip' }, body: [gzipSync(whole)] };
  };
}

/** The same answer with a pause before each piece. */
export function slow(script: Script, pauseMs: number): Script {
  return (request) => {
    const reply = script(request);
    return { ...reply, body: [...reply.body].flatMap((step) => [{ waitMs: pauseMs }, step]) };
  };
}

/** The same answer after a gate has been opened: holds a request in flight without sleeping. */
export function heldBy(waitFor: Gate, script: Script): Script {
  return (request) => {
    return { ...script(request), before: waitFor };
  };
}

export function toBuffer(step: Step): Buffer {
  if (typeof step === 'string') return Buffer.from(step);
  return Buffer.isBuffer(step) ? step : Buffer.alloc(0);
}
