import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import type { Clock } from '../../chat/ports.ts';
import { postgresOptions } from './connection-options.ts';
import { HostChoice, ReadOnlyServer } from './host-choice.ts';
import { ListeningProof, proofChannel } from './listening-proof.ts';
import { keyChangesChannel } from './provider-keys.ts';
import type { RevokedKey } from './revoked-keys.ts';
import { readRevoked, revokedKeysChannel } from './revoked-keys.ts';
import { within } from './within.ts';

/**
 * Receives on one connection which users' keys changed and which service keys were revoked, and knows up to which
 * moment it has received all of it. A ping that returns proves both: the server hands a session its pending
 * notifications before it reports itself ready again, so whatever was committed before the ping was sent has been
 * received.
 */
export interface KeyChanges {
  /** Monotonic milliseconds since which no change was missed; null while changes may be missed. */
  listeningSinceMs(): number | null;
  close(): Promise<void>;
}

export interface KeyChangesOptions {
  /** A direct connection: a transaction-mode pooler breaks LISTEN. */
  readonly url: string;
  /** Of this URL, shared with pools. */
  readonly hosts?: HostChoice | undefined;
  readonly onChange: (userId: string) => void;
  readonly onRevoked: (revoked: RevokedKey) => void;
  /** Notifies over another connection; what it says must arrive here, or this one receives nothing. */
  readonly notify: (channel: string, payload: string) => Promise<unknown>;
  /** Called at each change of state, the first attempt included; `reason` says why nothing is received. */
  readonly onState?: (listening: boolean, reason: string | null) => void;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Together they keep a deletion under one second even when the connection dies without a sign. */
const pingIntervalMs = 250;
const heardWithinMs = 700;
/** A ping without an answer for this long: the connection is given up. */
const pingTimeoutMs = 600;
const connectTimeoutSeconds = 2;
const firstBackoffMs = 100;
const longestBackoffMs = 1000;

/** Where another server has taken over, nothing is heard here any more, though the connection may go on. */
const ping = "SELECT 1, current_setting('transaction_read_only') AS read_only";

type Listener = ReturnType<typeof postgres>;

function connect(
  { url, onChange, onRevoked }: KeyChangesOptions,
  at: number,
  onClose: () => void,
  onProof: (payload: string) => void,
): Listener {
  // `onnotify` is what the library's own `listen` uses. That one reconnects by itself, silently and
  // without an end to a hung socket; here one connection lives once, and its end is seen.
  const options = {
    ...postgresOptions(url, '-listen', at),
    max: 1,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: connectTimeoutSeconds,
    fetch_types: false,
    prepare: false,
    onnotice: () => {},
    onnotify: (channel: string, payload: string) => {
      if (channel === proofChannel) onProof(payload);
      else if (channel === revokedKeysChannel) onRevoked(readRevoked(payload));
      else onChange(payload);
    },
    onclose: onClose,
  };
  return postgres(options);
}

/** An abort says only that the driver saw the connection end. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === 'AbortError' ? 'the connection was lost' : error.message;
}

/** Starts listening, and goes on until `close`, through every loss of the connection. */
export function listenForKeyChanges(options: KeyChangesOptions): KeyChanges {
  const { clock } = options;
  const closing = new AbortController();
  const choice = options.hosts ?? new HostChoice(options.url);
  let listeningSinceMs: number | null = null;
  let heardUpToMs = 0;
  let reported: boolean | null = null;

  function report(listening: boolean, reason: string | null): void {
    if (reported === listening || closing.signal.aborted) return;
    reported = listening;
    options.onState?.(listening, reason);
  }

  /** Lives as long as one connection: throws or returns when it is lost. */
  async function listenOnce(at: number, onWorking: () => void): Promise<void> {
    const lost = new AbortController();
    const signal = AbortSignal.any([closing.signal, lost.signal]);
    const proof = new ListeningProof();
    const sql = connect(options, at, () => lost.abort(), proof.onNotified);
    try {
      const channels = [keyChangesChannel, revokedKeysChannel, proofChannel];
      const listen = sql.unsafe(channels.map((channel) => `LISTEN ${channel}`).join(';')).simple();
      await within(listen, connectTimeoutSeconds * 1000, signal);
      const listensSinceMs = clock.monotonicMs();
      let isProven = await proof.prove(options.notify, signal);
      heardUpToMs = listensSinceMs;
      listeningSinceMs = heardUpToMs;
      onWorking();
      while (!signal.aborted) {
        await sleep(pingIntervalMs, undefined, { signal });
        const sentAtMs = clock.monotonicMs();
        const [state] = await within(sql.unsafe(ping).simple(), pingTimeoutMs, signal);
        if (choice.count > 1 && state?.['read_only'] !== 'off') {
          choice.leave(at);
          throw new ReadOnlyServer();
        }
        if (lost.signal.aborted) return; // the library may have answered over a new connection, which receives nothing
        if (!isProven) isProven = await proof.prove(options.notify, signal);
        heardUpToMs = sentAtMs;
      }
    } finally {
      listeningSinceMs = null;
      void sql.end({ timeout: 0 }).catch(() => {});
    }
  }

  async function run(): Promise<void> {
    let backoffMs = firstBackoffMs;
    let triedHosts = 0;
    while (!closing.signal.aborted) {
      const at = choice.current;
      const reason = await listenOnce(at, () => {
        backoffMs = firstBackoffMs;
        triedHosts = 0;
        report(true, null);
      }).then(() => 'the connection was lost', reasonOf);
      report(false, reason);
      if (closing.signal.aborted) return;
      choice.failed(at);
      triedHosts += 1;
      if (triedHosts < choice.count) continue;
      triedHosts = 0;
      // Up to a quarter of jitter keeps replicas from knocking together.
      const waitMs = backoffMs * (1 + Math.random() / 4);
      await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      backoffMs = Math.min(backoffMs * 2, longestBackoffMs);
    }
  }

  const running = run();
  return {
    listeningSinceMs: () => (clock.monotonicMs() - heardUpToMs <= heardWithinMs ? listeningSinceMs : null),
    close: async () => {
      closing.abort();
      await running;
    },
  };
}
