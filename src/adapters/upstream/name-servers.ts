import { randomInt } from 'node:crypto';
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import type { AddressFamily, NameAnswer } from './dns-message.ts';
import { isHostName, noSuchName, readNameAnswer, serverRefuses, writeQuestion } from './dns-message.ts';

/** One try of one name server; the caller's connect budget bounds the whole. */
const serverTimeoutMs = 1500;
const namePort = 53;

interface NameServer {
  readonly address: string;
  readonly port: number;
}

/** Why there is no address, as Node's own look-ups say it; `ETRUNCATED`: none came in a datagram. */
type Trouble =
  | 'ENOTFOUND'
  | 'ENODATA'
  | 'ESERVFAIL'
  | 'EREFUSED'
  | 'ETIMEOUT'
  | 'ECONNREFUSED'
  | 'ETRUNCATED';

export class LookupError extends Error {
  readonly code: Trouble;

  constructor(name: string, code: Trouble) {
    super(`query ${code} ${name}`);
    this.code = code;
  }
}

/** As `dns.getServers` has them: `192.0.2.1`, `192.0.2.1:5300`, `2001:db8::1`, `[2001:db8::1]:5300`. */
function nameServerOf(text: string): NameServer {
  if (isIP(text) !== 0) return { address: text, port: namePort };
  const [, address = '', port = ''] = /^\[?([^\]]*?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (isIP(address) === 0) throw new Error('There is no name server with an address.');
  return { address, port: Number(port) };
}

/** What one server says of a question. */
function troubleOf({ code, addresses, isCut }: NameAnswer): Trouble | null {
  if (code === noSuchName) return 'ENOTFOUND';
  if (code !== 0) return code === serverRefuses ? 'EREFUSED' : 'ESERVFAIL';
  if (addresses.length > 0) return null;
  // Never a denial: what did not fit may have been the addresses.
  return isCut ? 'ETRUNCATED' : 'ENODATA';
}

/** DNS has answered, and the answer is no. */
export const isDenied = ({ code }: { readonly code?: string | undefined }): boolean =>
  code === 'ENOTFOUND' || code === 'ENODATA';

/**
 * Asks the servers in their order for the addresses of one family, each for 1.5 s, and all of them once more. One that
 * does not answer goes to the end of `servers`, so that whoever asks them for another name does not wait for it again.
 * Over UDP alone: a hostile zone answers over TCP with 64 KB of addresses, which Node's resolver reads for 60 ms on the
 * event loop. Returns how to give up; nothing is told afterwards.
 */
export function askNameServers(
  servers: string[],
  name: string,
  family: AddressFamily,
  done: (error: LookupError | null, addresses: readonly string[]) => void,
): () => void {
  const tries = [true, false].flatMap((mayBeLong) =>
    servers.map((server) => ({ ...nameServerOf(server), server, mayBeLong })),
  );
  let giveUp = (): void => undefined;
  const tryFrom = (index: number, trouble: Trouble): void => {
    const next = tries[index];
    if (next === undefined) {
      done(new LookupError(name, trouble), []);
      return;
    }
    giveUp = askOnce(next, { name, family }, next.mayBeLong, (answer) => {
      if (typeof answer === 'string') {
        moveToEnd(servers, next.server);
        return tryFrom(index + 1, answer);
      }
      const code = troubleOf(answer);
      if (code === null) return done(null, answer.addresses);
      if (isDenied({ code })) return done(new LookupError(name, code), []);
      return tryFrom(index + 1, code);
    });
  };
  if (isHostName(name)) tryFrom(0, 'ESERVFAIL');
  else done(new LookupError(name, 'ENOTFOUND'), []);
  return () => giveUp();
}

function moveToEnd(servers: string[], server: string): void {
  const at = servers.indexOf(server);
  if (at >= 0) servers.push(...servers.splice(at, 1));
}

/** One question from a port of its own, with an id that nobody can guess. A text: why no answer came. */
function askOnce(
  { address, port }: NameServer,
  { name, family }: { readonly name: string; readonly family: AddressFamily },
  mayBeLong: boolean,
  told: (answer: NameAnswer | Trouble) => void,
): () => void {
  const id = randomInt(0x10000);
  const message = writeQuestion(id, name, family, mayBeLong);
  let socket: Socket | null = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  const end = (answer: NameAnswer | Trouble | null): void => {
    if (socket === null) return;
    clearTimeout(timer);
    socket.close();
    socket = null;
    if (answer !== null) told(answer);
  };
  const timer = setTimeout(() => end('ETIMEOUT'), serverTimeoutMs);
  socket.on('error', () => end('ECONNREFUSED'));
  // Somebody else's words are no answer: the true one may still come.
  socket.on('message', (given: Buffer) => {
    const answer = readNameAnswer(given, id, name, family);
    if (answer !== null) end(answer);
  });
  // Connected, so that only this server is heard, and its host's refusal too. A callback would be told of errors alone.
  socket.once('connect', () => socket?.send(message));
  socket.connect(port, address);
  return () => end(null);
}
