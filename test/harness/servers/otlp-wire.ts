import { parse } from 'protobufjs';
import type { AttributeRecord, AttributeValue, ReceivedSpan } from './otlp-receiver.ts';

/** An export of spans as OTLP has it in JSON; what protobuf brings is read into the same form. */
export interface WireExport {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: WireAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
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

/** The part of opentelemetry/proto/collector/trace/v1 and below that spans of ours use. */
const schema = parse(
  `syntax = "proto3";
  message Export { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schema_url = 3; }
  message Scope { string name = 1; string version = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
    int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10; repeated Event events = 11;
    uint32 dropped_events_count = 12; repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15;
    fixed32 flags = 16;
  }
  message Event {
    fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4;
  }
  message Link {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4;
    uint32 dropped_attributes_count = 5; fixed32 flags = 6;
  }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value {
      string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
      ArrayValue array_value = 5;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }`,
).root.lookupType('Export');

/** Ids as JSON has them. */
interface BinarySpan extends Omit<WireSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'links'> {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
  readonly parentSpanId: Buffer;
  readonly links: readonly { readonly traceId: Buffer; readonly spanId: Buffer }[];
}

const hex = (bytes: Buffer): string => Buffer.from(bytes).toString('hex');

export function decodeExport(body: Buffer): WireExport {
  const options = { longs: String, defaults: false, arrays: true } as const;
  const { resourceSpans } = schema.toObject(schema.decode(body), options) as {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: WireAttributes };
      readonly scopeSpans: readonly { readonly spans: readonly BinarySpan[] }[];
    }[];
  };
  const spanOf = (span: BinarySpan): WireSpan => ({
    ...span,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: span.parentSpanId === undefined ? '' : hex(span.parentSpanId),
    links: span.links.map(({ traceId, spanId }) => ({ traceId: hex(traceId), spanId: hex(spanId) })),
  });
  return {
    resourceSpans: resourceSpans.map(({ resource, scopeSpans }) => ({
      resource,
      scopeSpans: scopeSpans.map(({ spans }) => ({ spans: spans.map(spanOf) })),
    })),
  };
}

function readValue(value: WireValue): AttributeValue {
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(readValue);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? '';
}

/** OTLP wants each key once. */
function attributesOf(list: WireAttributes = []): AttributeRecord {
  const record = Object.fromEntries(list.map(({ key, value }) => [key, readValue(value)]));
  if (Object.keys(record).length < list.length) throw new Error(`a key twice: ${JSON.stringify(list)}`);
  return record;
}

const kinds = ['OTHER', 'INTERNAL', 'SERVER', 'CLIENT'] as const;
const statuses = ['UNSET', 'OK', 'ERROR'] as const;
const ms = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1000n) / 1000;

export function spansOf(document: WireExport): ReceivedSpan[] {
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
