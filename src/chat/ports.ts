import type { HeldKey } from '../core/candidate.ts';
import type { LimitExceptions } from '../core/limits/user-limits.ts';
import type { IpClass } from '../core/net/ip-class.ts';
import type { UpstreamHeaders } from '../core/outcome.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { Residency, ResidencyBound } from '../core/request/residency.ts';
import type { Secret } from '../core/secret/secret.ts';
import type { SettledRequest } from '../core/settled-request.ts';

/** The authenticated caller, as it stood when the request began. */
export interface Account {
  readonly userId: string;
  readonly keys: readonly HeldKey[];
  /** When these facts were read from Postgres (process-monotonic milliseconds). */
  readonly readAtMs: number;
}

/** Who presented a service key. */
export interface Caller extends Account {
  /** Of the key that was presented. */
  readonly serviceKeyId: string;
  /** By an operator: the key is good, and nothing is served. */
  readonly disabled: boolean;
  /** What an operator bound the user to; a request may ask for more, never for less. */
  readonly residency: ResidencyBound;
  /** Where an operator made the user an exception from the limits of the tables; null: nowhere. */
  readonly limits: LimitExceptions | null;
}

/** Finds who holds a service key. */
export interface Accounts {
  /**
   * By SHA-256 of the service key. A warm hit is a value, not a promise, so that it costs no turn.
   * Null: no such key. Rejects with StoreAway when Postgres is away and nothing is cached. `asker`: the network of a
   * client who has not been let in yet; a key that nobody knows waits for its turn by it.
   */
  find(keyHash: string, asker?: () => string): Caller | null | Promise<Caller | null>;
  /** True for a key that was good not long ago, though `find` has to look it up again. */
  remembers(keyHash: string): boolean;
  /** True for a key that was good here and was revoked since: `find` says null of it, as of any other. */
  isRevoked(keyHash: string): boolean;
  /** Reads past the cache: for a caller whose plan failed for want of a key just registered elsewhere. */
  refresh(keyHash: string): Promise<Caller | null>;
}

/** Settlement's way out. */
export interface RequestLog {
  /**
   * Resolves when the row is committed, or after `waitMs` (50) at most once it lies in the local spool.
   * Never rejects, never loses a row in silence.
   */
  record(settled: SettledRequest): Promise<void>;
  /**
   * False while the spool is full, or this user has most of it, and the policy is to refuse: new chat requests answer
   * 503.
   */
  accepting(userId: string): boolean;
}

/** Whose answer is stored. */
export interface CacheOwner {
  readonly userId: string;
  /** What all stored answers of the user may take of a store that all share. */
  readonly mostBytes: number;
}

/** Opt-in store of whole answers. Every failure is a miss; nothing here rejects. */
export interface ResponseCache {
  /**
   * Null on a miss, an expired entry, an unreadable value, or a store that is slow or away. At once where nobody has to
   * be asked: a promise costs a hit as much as its look-up.
   */
  get(key: string, userId: string): Buffer | null | Promise<Buffer | null>;
  /** True once it is stored. */
  set(key: string, value: Buffer, ttlSeconds: number, owner: CacheOwner): Promise<boolean>;
}

/** Opens a sealed provider key for one attempt. Null: the row was changed, or its master key is gone. */
export type OpenKey = (key: HeldKey) => Secret | null;

/**
 * In which form the servers behind keys want their requests, where it is not the usual one: learned from a refusal, so
 * that each is asked twice only once. What is forgotten is learned anew.
 */
export interface RequestForms {
  of(keyId: string): string | null;
  learn(keyId: string, form: string): void;
}

/** Why no HTTP answer came. */
export type TransportFailureKind =
  | 'connect-refused'
  | 'connect-timeout'
  | 'dns'
  | 'tls'
  | 'reset'
  /** The address is not one this deployment may reach (metadata service, private range, own stores). */
  | 'forbidden-address'
  /** Of the operator's proxy: not reached or broken off, no, not to us, not to there. */
  | 'proxy-unreachable'
  | 'proxy-refused'
  | 'proxy-login'
  | 'proxy-failed'
  /** The only way leads through a proxy outside the residency asked for; it was not asked. */
  | 'proxy-abroad'
  | 'protocol'
  /** Nobody asked for a coding, and this one is none of those that are read all the same. */
  | 'unknown-coding'
  | 'too-large'
  /** The user has as many calls to users' servers under way as others leave; or no room is left for the answer. */
  | 'no-room'
  | 'aborted';

export interface TransportFailure {
  readonly kind: TransportFailureKind;
  readonly message: string;
}

export interface UpstreamCall {
  readonly provider: ProviderName;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Absolute path with any prefix of the base address. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: 'GET' | 'POST';
  /** JSON; as bytes where it is large. Null: it has none. */
  readonly body: string | Buffer | null;
  /** What the call was planned under: checked again at the socket. */
  readonly residency: Residency;
  /** What the call is bound to, whoever says so; a socket outside it is never opened. */
  readonly residencyBound: ResidencyBound;
  /** True for user-given addresses, to which the outbound policy applies. */
  readonly userAddress: boolean;
  /** Whose call it is: calls to users' addresses are counted by user. */
  readonly userId: string;
}

/** What comes before a body. `headers` may be made when they are asked for: nearly every answer goes without. */
export interface UpstreamHead {
  readonly status: number;
  /** Empty where the vendor says nothing of it. */
  readonly contentType: string;
  readonly headers: UpstreamHeaders;
}

/** Callbacks of one upstream call; after `onEnd` or `onFailure` nothing more comes. */
export interface UpstreamListener {
  onHead(head: UpstreamHead): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  onFailure(failure: TransportFailure): void;
}

export interface UpstreamControl {
  /** The request was handed to a connection: from then on its vendor may have it. */
  readonly isSent: boolean;
  /** Tells its connection from all others, as the kernel's tables do; null: there is none, or it is not known. */
  readonly connectionName: string | null;
  /** Of the address that its connection leads, or led, to; null: there was none, or it is not known. */
  readonly addressClass: IpClass | null;
  pause(): void;
  resume(): void;
  /**
   * Closes the upstream socket now; `onFailure` with kind `aborted` follows unless the call had ended. `midAnswer`: an
   * answer that had begun stopped for longer than the operator lets it, so the path may be broken for others too.
   */
  abort(midAnswer?: boolean): void;
}

/** The only way to a provider. */
export interface UpstreamTransport {
  send(call: UpstreamCall, listener: UpstreamListener): UpstreamControl;
}

/** Time, as an argument: `wallMs` for dates, `monotonicMs` for durations. */
export interface Clock {
  wallMs(): number;
  monotonicMs(): number;
  /** Microseconds since the epoch for log rows; strictly increasing within a process. */
  stampMicros(): number;
}
