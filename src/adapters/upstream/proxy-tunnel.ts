import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import type { Secret } from '../../core/secret/secret.ts';
import { ConnectError } from './connect-error.ts';
import type { HostAddress } from './name-files.ts';

/** The head of a proxy's answer to CONNECT; of a refusal's body nothing is read. */
const maxAnswerBytes = 16 * 1024;
const statusLine = /^HTTP\/1\.[01] (\d{3})(?: [^\r\n]*)?\r\n/;
const headEnd = '\r\n\r\n';
/** Tinyproxy says 401 of credentials that are wrong, and 407 only where there are none. */
const needsLogin: readonly number[] = [401, 407];

/** What a proxy said, as an error; null: the way is open. */
function refusalOf(status: number): ConnectError | null {
  if (status >= 200 && status < 300) return null;
  if (needsLogin.includes(status)) return new ConnectError('proxy-login', String(status));
  return new ConnectError(status >= 500 ? 'proxy-failed' : 'proxy-refused', String(status));
}

/** Addresses of one name that a proxy is asked for, one after the other: one of each family. */
export function oneOfEachFamily(addresses: readonly HostAddress[]): string[] {
  const first = addresses[0] as HostAddress;
  const other = addresses.find(({ family }) => family !== first.family);
  return other === undefined ? [first.address] : [first.address, other.address];
}

/** The proxy closed, or sent what is no answer to CONNECT. */
const brokenOff = (): ConnectError => new ConnectError('proxy-unreachable');

/**
 * Asks the proxy at the other end of `socket` for a connection to `host`. Calls `done` once, with null when from now on
 * the socket is that connection. Nothing may follow the answer's head: who is behind the proxy waits to be spoken to.
 * Errors of the socket are its owner's.
 */
export function askForTunnel(
  socket: Socket,
  { host, port }: { readonly host: string; readonly port: number },
  authorization: Secret | null,
  done: (error: ConnectError | null) => void,
): void {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const login = authorization === null ? '' : `proxy-authorization: ${authorization.reveal()}\r\n`;
  let answer = '';

  const finish = (error: ConnectError | null): void => {
    socket.off('data', onData).off('end', onEnd).off('close', onEnd);
    done(error);
  };
  const onEnd = (): void => finish(brokenOff());
  const onData = (bytes: Buffer): void => {
    answer += bytes.toString('latin1');
    const end = answer.indexOf(headEnd);
    if (end < 0) {
      if (answer.length > maxAnswerBytes) finish(brokenOff());
      return;
    }
    const status = Number(statusLine.exec(answer)?.[1] ?? 0);
    const refusal = status === 0 ? brokenOff() : refusalOf(status);
    const isOver = end + headEnd.length === answer.length;
    finish(refusal ?? (isOver ? null : brokenOff()));
  };
  socket.on('data', onData).on('end', onEnd).on('close', onEnd);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${login}\r\n`, 'latin1');
}
