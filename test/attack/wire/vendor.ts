import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { anthropicAnswer, anthropicStream } from '../../harness/vendors/anthropic-wire.ts';
import { openAiAnswer, openAiStream } from '../../harness/vendors/openai-wire.ts';
import type { VendorScript, VendorStep } from '../attack-case.ts';
import { drained } from './sockets.ts';

/** One vendor for all providers, below HTTP: it knows a call by the id in its prompt and plays that case's script. */
export interface AttackVendor {
  readonly url: string;
  readonly port: number;
  /** The script of a request id; healthy without one. */
  play(id: string, script: VendorScript): void;
  /** Ids of the calls that came, each as often as it came. */
  readonly calls: readonly string[];
  /** Forgets scripts and calls; ends every connection. */
  clear(): void;
  close(): Promise<void>;
}

const idInPrompt = /call (atk-[A-Za-z0-9_-]+) /;
/** Enough of a request to find the id in it. */
const searchedBytes = 4096;
const mostPauses = 100;

const healthyHead = (type: string, length: number): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;

function healthy(head: string, start: string): VendorScript {
  const stream = /"stream":true/.test(start);
  const anthropic = head.startsWith('POST /v1/messages');
  const text = stream
    ? (anthropic ? anthropicStream('claude-test') : openAiStream('gpt-test')).join('')
    : JSON.stringify(anthropic ? anthropicAnswer('claude-test') : openAiAnswer('gpt-test'));
  const type = stream ? 'text/event-stream' : 'application/json';
  const bytes = Buffer.from(healthyHead(type, Buffer.byteLength(text)) + text);
  return {
    begins: 'whole',
    sound: true,
    steps: [{ kind: 'write', bytes, pieceBytes: bytes.length, pauseMs: 0 }],
  };
}

async function take(socket: Socket, step: VendorStep): Promise<void> {
  switch (step.kind) {
    case 'wait':
      await delay(step.ms);
      return;
    case 'end':
      socket.end();
      return;
    case 'reset':
      socket.resetAndDestroy();
      return;
    case 'repeat':
      for (let left = step.times; left > 0 && !socket.destroyed; left -= 1) {
        if (!socket.write(step.bytes)) await drained(socket);
      }
      return;
    case 'write': {
      let pauses = 0;
      for (let at = 0; at < step.bytes.length && !socket.destroyed; at += step.pieceBytes) {
        const went = socket.write(step.bytes.subarray(at, at + step.pieceBytes));
        if (!went) await drained(socket);
        if (step.pauseMs === 0 || pauses >= mostPauses) continue;
        pauses += 1;
        await delay(step.pauseMs);
      }
    }
  }
}

/** What one connection has received of the present request. */
class Incoming {
  head: string | null = null;
  #start = '';
  #seen = 0;
  #length = 0;
  #begun = false;

  /** The steps of a request that is far enough; null while it is not. */
  push(bytes: Buffer, scriptOf: (head: string, start: string) => VendorScript): VendorScript | null {
    if (this.head === null || this.#start.length < searchedBytes) this.#start += bytes.toString('latin1');
    this.#seen += bytes.length;
    if (this.head === null) {
      const end = this.#start.indexOf('\r\n\r\n');
      if (end < 0) return null;
      this.head = this.#start.slice(0, end);
      this.#length = end + 4 + Number(/content-length: (\d+)/i.exec(this.head)?.[1] ?? 0);
    }
    if (this.#begun) return null;
    const whole = this.#seen >= this.#length;
    if (!whole && !idInPrompt.test(this.#start)) return null;
    const script = scriptOf(this.head, this.#start);
    if (!whole && script.begins === 'whole') return null;
    this.#begun = true;
    return script;
  }

  get whole(): boolean {
    return this.head !== null && this.#seen >= this.#length;
  }
}

export async function startAttackVendor(): Promise<AttackVendor> {
  const scripts = new Map<string, VendorScript>();
  const calls: string[] = [];
  const sockets = new Set<Socket>();
  const scriptOf = (head: string, start: string): VendorScript => {
    const id = idInPrompt.exec(start)?.[1];
    return (id === undefined ? undefined : scripts.get(id)) ?? healthy(head, start);
  };
  const server = createServer({ noDelay: true, allowHalfOpen: false }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let incoming = new Incoming();
    let noted = false;
    socket.on('data', (bytes) => {
      const script = incoming.push(bytes, (head, start) => {
        const id = idInPrompt.exec(start)?.[1];
        if (!noted && id !== undefined) calls.push(id);
        noted = true;
        return scriptOf(head, start);
      });
      if (script !== null) void play(socket, script);
      if (!incoming.whole) return;
      incoming = new Incoming();
      noted = false;
    });
  });
  const play = async (socket: Socket, script: VendorScript): Promise<void> => {
    for (const step of script.steps) {
      if (socket.destroyed) return;
      await take(socket, step);
    }
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    play: (id, script) => scripts.set(id, script),
    calls,
    clear: () => {
      scripts.clear();
      calls.length = 0;
      destroyAll();
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      destroyAll();
      await closed;
    },
  };
}
