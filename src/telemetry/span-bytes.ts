import type { Attributes, AttributeValue, Link, SpanContext } from '@opentelemetry/api';
import { ProtobufBytes } from './protobuf-bytes.ts';
import type { RecordedSpan, SpanEvent } from './recorded-span.ts';

/** Who made the spans: what the SDK knows of this process, and the name of its tracer. */
export interface SpanOrigin {
  readonly resource: {
    readonly attributes: Attributes;
    readonly schemaUrl?: string;
    readonly asyncAttributesPending?: boolean;
    waitForAsyncAttributes?(): Promise<void>;
  };
  readonly scope: { readonly name: string; readonly version?: string; readonly schemaUrl?: string };
}

/** Whether the parent is remote is known: always. */
const remoteIsKnown = 0x100;
const isRemote = 0x200;
const longLength = 2;
/** Of the whole message around the spans, without its spans. */
const envelopeSize = 1_024;

/**
 * A span in the form of OTLP (opentelemetry/proto/trace/v1/trace.proto), to the byte as the SDK's serializer writes it.
 * That one writes a whole batch from span objects, and measures it first: 15 µs a chat request, and as much again for
 * collecting objects that had to live until then. Written soon after it ended it is 3 µs, and only bytes are left.
 */
export function writeSpan(out: ProtobufBytes, span: RecordedSpan): void {
  const start = out.open(2, longLength);
  const context = span.spanContext();
  const { parent, keys, values } = span;
  writeContext(out, context);
  if (parent !== null) out.hex(4, parent.spanId);
  out.text(5, span.name);
  out.integer(6, span.kind + 1);
  writeTime(out, 7, span.startedAtMs);
  writeTime(out, 8, span.endedAtMs);
  for (let index = 0; index < keys.length; index += 1) {
    writeAttribute(out, 9, keys[index] as string, values[index]);
  }
  out.integer(10, 0);
  for (const event of span.events) writeEvent(out, event);
  out.integer(12, span.droppedEvents);
  for (const link of span.links) writeLink(out, link);
  out.integer(14, 0);
  const status = out.open(15);
  out.integer(3, span.status);
  out.close(status);
  out.fixed32(16, flagsOf(context, parent));
  out.close(start, longLength);
}

/** The message around spans of one origin, whose attributes are all known by now. */
export function exportRequest({ resource, scope }: SpanOrigin, spans: Uint8Array): Uint8Array {
  const out = new ProtobufBytes(spans.length + envelopeSize);
  const start = out.open(1, 4);
  const own = out.open(1);
  writeAttributes(out, 1, resource.attributes);
  out.integer(2, 0);
  out.close(own);
  const scoped = out.open(2, 4);
  const named = out.open(1);
  out.text(1, scope.name);
  if (scope.version) out.text(2, scope.version);
  out.close(named);
  out.append(spans);
  if (scope.schemaUrl) out.text(3, scope.schemaUrl);
  out.close(scoped, 4);
  if (resource.schemaUrl) out.text(3, resource.schemaUrl);
  out.close(start, 4);
  return out.written;
}

function writeEvent(out: ProtobufBytes, { name, atMs, attributes }: SpanEvent): void {
  const start = out.open(11);
  writeTime(out, 1, atMs);
  out.text(2, name);
  if (attributes !== null) writeAttributes(out, 3, attributes);
  out.integer(4, 0);
  out.close(start);
}

function writeLink(out: ProtobufBytes, { context }: Link): void {
  const start = out.open(13);
  writeContext(out, context);
  out.integer(5, 0);
  out.fixed32(6, flagsOf(context, context));
  out.close(start);
}

function writeContext(out: ProtobufBytes, { traceId, spanId, traceState }: SpanContext): void {
  out.hex(1, traceId);
  out.hex(2, spanId);
  const state = traceState?.serialize();
  if (state) out.text(3, state);
}

const flagsOf = ({ traceFlags }: SpanContext, from: SpanContext | null): number =>
  (traceFlags & 0xff) | remoteIsKnown | (from?.isRemote ? isRemote : 0);

/** Nanoseconds as 64 bits, in halves: doubles are exact for each step, and a BigInt would cost ten times as much. */
function writeTime(out: ProtobufBytes, field: number, wallMs: number): void {
  const seconds = Math.floor(wallMs / 1000);
  const nanoseconds = Math.round((wallMs - seconds * 1000) * 1e6);
  const upper = Math.floor(seconds / 0x1_0000) * 1e9;
  const lower = (seconds & 0xffff) * 1e9 + (upper % 0x1_0000) * 0x1_0000 + nanoseconds;
  out.fixed64(field, Math.floor(upper / 0x1_0000) + Math.floor(lower / 0x1_0000_0000), lower);
}

function writeAttributes(out: ProtobufBytes, field: number, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) writeAttribute(out, field, key, value);
}

function writeAttribute(
  out: ProtobufBytes,
  field: number,
  key: string,
  value: AttributeValue | undefined,
): void {
  const start = out.open(field);
  out.text(1, key);
  writeValue(out, 2, value);
  out.close(start);
}

/** An AnyValue. */
function writeValue(out: ProtobufBytes, field: number, value: AttributeValue | null | undefined): void {
  const start = out.open(field);
  if (typeof value === 'string') out.text(1, value);
  else if (typeof value === 'number') writeNumber(out, value);
  else if (typeof value === 'boolean') out.integer(2, value ? 1 : 0);
  else if (Array.isArray(value)) {
    const list = out.open(5);
    for (const item of value) writeValue(out, 1, item);
    out.close(list);
  }
  out.close(start);
}

function writeNumber(out: ProtobufBytes, value: number): void {
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63) out.integer(3, value);
  else out.double(4, value);
}
