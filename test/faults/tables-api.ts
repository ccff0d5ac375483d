import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What the API did or was asked to do: lists, watches and Events, in order. */
export interface ApiRequest {
  readonly kind: 'list' | 'watch' | 'event';
  readonly atMs: number;
  /** Of a list or watch. */
  readonly fieldSelector: string | null;
  readonly resourceVersion: string | null;
  /** Of an Event. */
  readonly body: { readonly metadata?: { readonly name?: string }; readonly message?: string } | null;
}

/** How the next lists and watches are answered: as they should be, with a status, not at all, or by a cut connection. */
export type Behaviour = 'serve' | 'hang' | 'reset' | 403 | 410 | 500;

export const configMap = { namespace: 'gateways', name: 'tables' };

/** As much of the Kubernetes API as the watch of one ConfigMap sees, with the faults of a real one on demand. */
export class FakeTablesApi {
  readonly requests: ApiRequest[] = [];
  /** Entries of the ConfigMap beside its `tables.yaml`. */
  readonly beside = new Map<string, string>();
  behaviour: { list: Behaviour; watch: Behaviour } = { list: 'serve', watch: 'serve' };
  readonly #watches = new Set<ServerResponse>();
  readonly #events = new Set<string>();
  readonly #server: Server;
  #document: string | null;
  #version = 1;
  #port = 0;

  constructor(document: string | null) {
    this.#document = document;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Listens; after `stop` at the same port again. */
  async start(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** The server is gone, with every connection. */
  async stop(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }

  /** A kubeconfig for it, as JSON. */
  kubeconfig(): string {
    const server = `http://127.0.0.1:${this.#port}`;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'fake', cluster: { server, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'fake', user: { token: 'fake' } }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
      'current-context': 'fake',
    });
  }

  /** Replaces the document, or deletes the ConfigMap; open watches are told. */
  edit(document: string | null): void {
    const type = document === null ? 'DELETED' : this.#document === null ? 'ADDED' : 'MODIFIED';
    const object = this.#object(document ?? this.#document ?? '');
    this.#document = document;
    this.#version += 1;
    for (const watch of this.#watches) send(watch, type, { ...object, ...this.#metadata() });
  }

  /** Ends the open watches: as a server does after a while, with the error of a version that is too old, or by a reset. */
  endWatches(how: 'close' | 'expired' | 'reset'): void {
    for (const watch of this.#watches) {
      if (how === 'expired') send(watch, 'ERROR', { kind: 'Status', code: 410, reason: 'Expired' });
      if (how === 'reset') watch.socket?.resetAndDestroy();
      else watch.end();
    }
    this.#watches.clear();
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  count(kind: ApiRequest['kind']): number {
    return this.requests.filter((request) => request.kind === kind).length;
  }

  #metadata(): object {
    return { metadata: { ...configMap, uid: 'a-uid', resourceVersion: `${this.#version}` } };
  }

  #object(document: string): object {
    const data = { 'tables.yaml': document, ...Object.fromEntries(this.beside) };
    return { apiVersion: 'v1', kind: 'ConfigMap', ...this.#metadata(), data };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { searchParams } = new URL(request.url ?? '/', 'http://fake');
    const body = request.method === 'POST' ? JSON.parse(await text(request)) : null;
    const kind = body !== null ? 'event' : searchParams.get('watch') === 'true' ? 'watch' : 'list';
    this.requests.push({
      kind,
      atMs: performance.now(),
      fieldSelector: searchParams.get('fieldSelector'),
      resourceVersion: searchParams.get('resourceVersion'),
      body,
    });
    if (kind === 'event') return this.#takeEvent(body.metadata.name, response);
    const behaviour = this.behaviour[kind];
    if (behaviour === 'hang') return;
    if (behaviour === 'reset') request.socket.resetAndDestroy();
    else if (behaviour !== 'serve') respond(response, behaviour, { kind: 'Status', code: behaviour });
    else if (kind === 'list') this.#list(response);
    else this.#watch(response);
  }

  /** Names are unique: what a second replica says too is a conflict. */
  #takeEvent(name: string, response: ServerResponse): void {
    const isKnown = this.#events.has(name);
    this.#events.add(name);
    respond(response, isKnown ? 409 : 201, { kind: isKnown ? 'Status' : 'Event' });
  }

  #list(response: ServerResponse): void {
    const items = this.#document === null ? [] : [this.#object(this.#document)];
    respond(response, 200, {
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: `${this.#version}` },
      items,
    });
  }

  #watch(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    this.#watches.add(response);
    response.once('close', () => this.#watches.delete(response));
  }
}

function send(watch: ServerResponse, type: string, object: object): void {
  watch.write(`${JSON.stringify({ type, object })}\n`);
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
