import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { eventually } from '../measure/eventually.ts';
import type { WireExport } from './otlp-wire.ts';
import { decodeExport, spansOf } from './otlp-wire.ts';

/** An OTLP/HTTP collector, of protobuf and of JSON, that keeps the spans it is sent, or hangs on them. */

export type AttributeValue = string | number | boolean | readonly AttributeValue[];
export type AttributeRecord = Readonly<Record<string, AttributeValue>>;

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'OTHER';
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: AttributeRecord;
  readonly events: readonly { readonly name: string; readonly attributes: AttributeRecord }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: 'UNSET' | 'OK' | 'ERROR';
  readonly resource: AttributeRecord;
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** Bodies as text, for what must not be in them. */
  readonly bodies: string[];
  /** Environment settings that point a gateway here. */
  readonly env: Readonly<Record<string, string>>;
  /** Requests that were received and never answered. */
  held(): number;
  /** Stops answering. */
  hang(): void;
  /** Requests that were answered with a 401, which all are from `refuse` on. */
  refused(): number;
  refuse(): void;
  /** The spans of one trace once it has `count` of them, parents before children. */
  trace(traceId: string, count: number): Promise<ReceivedSpan[]>;
  close(): Promise<void>;
}

/** Starts a collector on a free port of 127.0.0.1. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const held: ServerResponse[] = [];
  const sockets = new Set<Socket>();
  let hanging = false;
  let refusing = false;
  let refused = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (hanging) {
        held.push(response);
        return;
      }
      if (refusing) {
        refused += 1;
        response.writeHead(401).end();
        return;
      }
      const body = Buffer.concat(chunks);
      const text = body.toString('utf8');
      bodies.push(text);
      const isJson = request.headers['content-type'] === 'application/json';
      spans.push(...spansOf(isJson ? (JSON.parse(text) as WireExport) : decodeExport(body)));
      const type = isJson ? 'application/json' : 'application/x-protobuf';
      response.writeHead(200, { 'content-type': type }).end(isJson ? '{}' : '');
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    spans,
    bodies,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_BSP_SCHEDULE_DELAY: '20',
    },
    held: () => held.length,
    hang: () => {
      hanging = true;
    },
    refused: () => refused,
    refuse: () => {
      refusing = true;
    },
    trace: async (traceId, count) => {
      const found = () => spans.filter((span) => span.traceId === traceId);
      await eventually(() => Promise.resolve(found().length >= count || undefined)).catch(() => undefined);
      return found().sort((a, b) => a.startMs - b.startMs || Number(a.kind === 'CLIENT') - 1);
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
