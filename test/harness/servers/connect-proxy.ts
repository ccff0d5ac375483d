import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer as createTcpServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { IssuedCertificate } from './certificates.ts';

/** What the proxy does with a CONNECT: makes the connection, answers these bytes and closes or not, or says nothing. */
export type ProxyAnswer =
  | 'open'
  | 'silent'
  | 'cut'
  | 'reset'
  | { readonly says: string; readonly thenOpen?: boolean };

export interface ConnectProxy {
  readonly port: number;
  /** The targets asked for, in order. */
  readonly asked: string[];
  /** Values of `Proxy-Authorization`, one per CONNECT. */
  readonly logins: (string | null)[];
  /** Connections so far. */
  readonly connections: () => number;
  readonly open: () => number;
  /** Of the CONNECTs from now on, by their target. */
  answer: (authority: string) => ProxyAnswer;
  /** Ends all tunnels. */
  cutAll(): void;
  close(): Promise<void>;
}

/** A proxy that knows every name and address: all are this host. With a certificate it speaks TLS itself. */
export async function startConnectProxy(certificate?: IssuedCertificate): Promise<ConnectProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const asked: string[] = [];
  const logins: (string | null)[] = [];

  const onClient = (client: Socket): void => {
    connections += 1;
    sockets.add(client);
    client.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
    let head = '';
    const onData = (bytes: Buffer): void => {
      head += bytes.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      client.off('data', onData);
      const authority = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? '';
      asked.push(authority);
      logins.push(/^proxy-authorization: (.*)\r$/im.exec(head)?.[1] ?? null);
      act(client, authority, proxy.answer(authority));
    };
    client.on('data', onData);
  };
  const act = (client: Socket, authority: string, answer: ProxyAnswer): void => {
    if (answer === 'silent') return;
    if (answer === 'cut') return void client.end();
    if (answer === 'reset')
      return void (certificate === undefined ? client.resetAndDestroy() : client.destroy());
    if (answer !== 'open' && answer.thenOpen !== true) return void client.end(answer.says);
    const target = connect(Number(authority.replace(/^.*:/, '')), '127.0.0.1');
    target.on('error', () => client.destroy());
    target.on('close', () => client.destroy());
    client.on('close', () => target.destroy());
    target.once('connect', () => {
      client.write(answer === 'open' ? 'HTTP/1.1 200 Connection established\r\n\r\n' : answer.says);
      client.pipe(target).pipe(client);
    });
  };
  const server: Server =
    certificate === undefined ? createTcpServer(onClient) : createTlsServer(certificate, onClient);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const proxy: ConnectProxy = {
    port: (server.address() as AddressInfo).port,
    asked,
    logins,
    connections: () => connections,
    open: () => sockets.size,
    answer: () => 'open',
    cutAll,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      cutAll();
      await closed;
    },
  };
  return proxy;
}
