import type { Attributes, Span } from '@opentelemetry/api';

/** Puts attributes of ours on a span that is recorded. */
export type PutAttributes = (span: Span, attributes: Attributes) => void;

export const putChecked: PutAttributes = (span, attributes) => {
  span.setAttributes(attributes);
};

/**
 * Into the SDK's span itself. It would look at each as if it came from anybody, which costs 2 µs a request and two
 * dozen WeakSets; ours have types that it takes, are far fewer than its limit, and their values are not changed later.
 * Only where the operator has set no limits.
 */
export const putUnchecked: PutAttributes = (span, attributes) => {
  if (span.isRecording() && hasAttributes(span)) Object.assign(span.attributes, attributes);
  else span.setAttributes(attributes);
};

function hasAttributes(span: Span): span is Span & { readonly attributes: Attributes } {
  return 'attributes' in span && typeof span.attributes === 'object' && span.attributes !== null;
}
