/** What one case does, as data: made by a generator from a seed, carried out by the wires, judged apart. */

/** `known` is looked up once a minute only; `forgotten` is a good key whose account must be looked up again. */
export type Auth = 'known' | 'forgotten' | 'unknown' | 'malformed' | 'none';

/** FIN, RST, or not a byte more while the connection stays. */
export type Leaving = 'end' | 'reset' | 'silence';

export type BodyPlan =
  | {
      readonly kind: 'chat';
      /** Fields beyond model and messages; `undefined` is not sent. */
      readonly fields: Readonly<Record<string, unknown>>;
      /** The whole body's length where it is larger than the rest needs. */
      readonly totalBytes: number;
    }
  | { readonly kind: 'bytes'; readonly bytes: Buffer };

export interface Sending {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly auth: Auth;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: BodyPlan | null;
  readonly framing: 'length' | 'chunked';
  /** Added to the true length in the Content-Length header. */
  readonly lengthLie: number;
  /** Of each HTTP chunk, or of each write where the length is declared. */
  readonly pieceBytes: number;
  /** Of each write of the head. */
  readonly headPieceBytes: number;
  /** Between writes; only the first hundred are kept apart. */
  readonly pauseMs: number;
  /** The client waits for 100 Continue, 200 ms at most. */
  readonly expectContinue: boolean;
  /** Leaves after this share of head and body; 1: stays. */
  readonly stopAt: number;
  /** Which part `stopAt` counts in. */
  readonly stopIn: 'head' | 'body' | 'never';
  readonly stopHow: Leaving;
  /** The same request so many times on one connection, without waiting for answers. */
  readonly copies: number;
}

export type Reading =
  | { readonly kind: 'all' }
  /** Nothing at all, for so long; then it leaves. */
  | { readonly kind: 'never'; readonly leaveAfterMs: number; readonly how: Leaving }
  /** So many bytes at a time with pauses between, the rest at once after `slowBytes`. */
  | {
      readonly kind: 'slow';
      readonly pieceBytes: number;
      readonly pauseMs: number;
      readonly slowBytes: number;
    }
  /** Ends its own side once the request is written, and reads on. */
  | { readonly kind: 'half-close' }
  | { readonly kind: 'leave'; readonly afterBytes: number; readonly afterMs: number; readonly how: Leaving };

export type VendorStep =
  | { readonly kind: 'write'; readonly bytes: Buffer; readonly pieceBytes: number; readonly pauseMs: number }
  /** The same bytes so many times, as fast as the gateway reads. */
  | { readonly kind: 'repeat'; readonly bytes: Buffer; readonly times: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'reset' };

export interface VendorScript {
  /** Begins with the request's first bytes, or when it is whole. */
  readonly begins: 'early' | 'whole';
  readonly steps: readonly VendorStep[];
  /** True when any well-behaved client could read this answer. */
  readonly sound: boolean;
}

export interface AttackCase {
  readonly sending: Sending;
  readonly reading: Reading;
  /** Null: a healthy answer, JSON or stream as asked. */
  readonly vendor: VendorScript | null;
  /** Statuses that are right for whoever stays to the end; null: any but 500. */
  readonly statuses: readonly number[] | null;
}

/** A generator with its name, which is half of a seed's name: `vendor-json:4711`. */
export interface Family {
  readonly name: string;
  readonly make: (seed: number) => AttackCase;
  /** Cases in the stage. */
  readonly count: number;
  /** Cases that run beside each other. */
  readonly width: number;
  /** Each way between gateway and Postgres. */
  readonly postgresDelayMs: number;
}

/** A healthy request in one write, read to its end. */
export const plainSending: Sending = {
  method: 'POST',
  path: '/v1/chat/completions',
  auth: 'known',
  headers: {},
  body: { kind: 'chat', fields: {}, totalBytes: 0 },
  framing: 'length',
  lengthLie: 0,
  pieceBytes: 64 * 1024,
  headPieceBytes: 64 * 1024,
  pauseMs: 0,
  expectContinue: false,
  stopAt: 1,
  stopIn: 'never',
  stopHow: 'end',
  copies: 1,
};
