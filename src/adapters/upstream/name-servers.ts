import { randomInt } from 'node:crypto';
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import type { AddressFamily } from './dns-message.ts';
import { isHostName, noSuchName, readNameAnswer, writeQuestion } from './dns-message.ts';

/** One try of one name server; the caller's connect budget bounds the whole. */
const serverTimeoutMs = 1500;
const namePort = 53;

interface NameServer {
  readonly address: string;
  readonly port: number;
}

/** Why there is no address; `code` as Node's own look-ups have it. */
export class LookupError extends Error {
  readonly code: 'ENOTFOUND' | 'ENODATA' | 'ESERVFAIL' | 'ETIMEOUT';

  constructor(name: string, code: LookupError['code']) {
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

/**
 * Asks the servers in their order for the addresses of one family, each for 1.5 s, and all of them once more. Over UDP
 * alone: a hostile zone answers over TCP with 64 KB of addresses, which Node's resolver reads for 60 ms on the event
 * loop. What a datagram holds is more than is tried of a name. Returns how to give up; nothing is told afterwards.
 */
export function askNameServers(
  servers: readonly string[],
  name: string,
  family: AddressFamily,
  done: (error: LookupError | null, addresses: readonly string[]) => void,
): () => void {
  const tries = [true, false].flatMap((mayBeLong) =>
    servers.map((server) => ({ ...nameServerOf(server), mayBeLong })),
  );
  const question = { name, family };
  let giveUp = (): void => undefined;
  const tryFrom = (index: number, trouble: LookupError['code']): void => {
    const next = tries[index];
    if (next === undefined) {
      done(new LookupError(name, trouble), []);
      return;
    }
    giveUp = askOnce(next, question, next.mayBeLong, (answer) => {
      if (answer === null) return tryFrom(index + 1, 'ETIMEOUT');
      if (answer.code === noSuchName) return done(new LookupError(name, 'ENOTFOUND'), []);
      if (answer.code !== 0) return tryFrom(index + 1, 'ESERVFAIL');
      if (answer.addresses.length === 0) return done(new LookupError(name, 'ENODATA'), []);
      return done(null, answer.addresses);
    });
  };
  if (isHostName(name)) tryFrom(0, 'ESERVFAIL');
  else done(new LookupError(name, 'ENOTFOUND'), []);
  return () => giveUp();
}

/** One question from a port of its own, with an id that nobody can guess. Null: no answer came. */
function askOnce(
  { address, port }: NameServer,
  { name, family }: { readonly name: string; readonly family: AddressFamily },
  mayBeLong: boolean,
  told: (answer: ReturnType<typeof readNameAnswer>) => void,
): () => void {
  const id = randomInt(0x10000);
  const message = writeQuestion(id, name, family, mayBeLong);
  let socket: Socket | null = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  const end = (answer: ReturnType<typeof readNameAnswer>, isWanted: boolean): void => {
    if (socket === null) return;
    clearTimeout(timer);
    socket.close();
    socket = null;
    if (isWanted) told(answer);
  };
  const timer = setTimeout(() => end(null, true), serverTimeoutMs);
  socket.on('error', () => end(null, true));
  socket.on('message', (given: Buffer) => {
    const answer = readNameAnswer(given, id, name, family);
    // Somebody else's words: the true answer may still come.
    if (answer !== null) end(answer, true);
  });
  // Connected, so that only this server is heard, and its host's refusal too.
  socket.connect(port, address, () => socket?.send(message));
  return () => end(null, false);
}
