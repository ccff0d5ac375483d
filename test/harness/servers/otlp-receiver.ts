import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { eventually } from '../measure/eventually.ts';

/** An OTLP/HTTP collector that keeps the spans it is sent, or hangs on them. */

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
  /** Bodies as they came, for what must not be in them. */
  readonly bodies: string[];
  /** Environment settings that point a gateway here. */
  readonly env: Readonly<Record<string, string>>;
  /** Requests that were received and never answered. */
  held(): number;
  /** Stops answering. */
  hang(): void;
  /** The spans of one trace once it has `count` of them, parents before children. */
  trace(traceId: string, count: number): Promise<ReceivedSpan[]>;
  close(): Promise<void>;
}

interface WireValue {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly WireValue[] };
}
type WireAttributes = readonly { readonly key: string; readonly value: WireValue }[];

interface WireSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: WireAttributes;
  readonly events?: readonly { readonly name: string; readonly attributes?: WireAttributes }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code?: number };
}

interface WireExport {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: WireAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

function readValue(value: WireValue): AttributeValue {
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(readValue);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? '';
}

const attributesOf = (list: WireAttributes = []): AttributeRecord =>
  Object.fromEntries(list.map(({ key, value }) => [key, readValue(value)]));

const kinds = ['OTHER', 'INTERNAL', 'SERVER', 'CLIENT'] as const;
const statuses = ['UNSET', 'OK', 'ERROR'] as const;
const ms = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1000n) / 1000;

function spansOf(document: WireExport): ReceivedSpan[] {
  return document.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: kinds[span.kind] ?? 'OTHER',
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        startMs: ms(span.startTimeUnixNano),
        endMs: ms(span.endTimeUnixNano),
        attributes: attributesOf(span.attributes),
        events: (span.events ?? []).map((event) => ({
          name: event.name,
          attributes: attributesOf(event.attributes),
        })),
        links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
        status: statuses[span.status?.code ?? 0] ?? 'UNSET',
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

/** Starts a collector on a free port of 127.0.0.1. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const held: ServerResponse[] = [];
  const sockets = new Set<Socket>();
  let hanging = false;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (hanging) {
        held.push(response);
        return;
      }
      const text = Buffer.concat(chunks).toString('utf8');
      bodies.push(text);
      spans.push(...spansOf(JSON.parse(text) as WireExport));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
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
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    },
    held: () => held.length,
    hang: () => {
      hanging = true;
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
