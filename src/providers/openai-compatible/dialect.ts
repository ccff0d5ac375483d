import type { Feature } from '../../core/capability.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { ModelFacts } from '../../core/tables/model-facts.ts';
import type { VendorError } from '../error-body.ts';
import type { UpstreamErrorKind } from '../provider.ts';

/** All that differs between vendors which speak the OpenAI Chat Completions format. */
export interface Dialect {
  readonly name: ProviderName;
  readonly defaultBaseUrl: string | null;
  /** True: the client's fields are sent as they are; only our own additions and names are taken care of. */
  readonly verbatim: boolean;
  /** True: `stop` goes out as a list even when the client sent one string. */
  readonly stopAsList: boolean;
  /** True: content that is text in parts goes out as one text. */
  readonly plainText: boolean;
  path(facts: ModelFacts): string;
  /** Where the vendor lists its models. */
  readonly modelsPath: string;
  authHeaders(secret: string): Readonly<Record<string, string>>;
  /** What this vendor has no words for (`Provider.lacks`). */
  lacks(facts: ModelFacts): readonly Feature[];
  /** Known client fields that the vendor's API does not list: left out and reported. */
  lackedFields(facts: ModelFacts): readonly string[];
  /** The class of an error whose status lies; null: the status is to be believed. */
  errorKind(status: number, error: VendorError): UpstreamErrorKind | null;
}

/** What a vendor says of itself: its name, its address, and where it differs. */
export type DialectOf = Pick<Dialect, 'name' | 'defaultBaseUrl'> & Partial<Dialect>;

const nothing: readonly never[] = [];

/** As OpenAI has it (OpenAI API reference: Chat Completions, read 2026-11-20). */
export const usualDialect: Omit<Dialect, 'name' | 'defaultBaseUrl'> = {
  verbatim: false,
  stopAsList: false,
  plainText: false,
  path: () => '/v1/chat/completions',
  modelsPath: '/v1/models',
  authHeaders: (secret) => ({ authorization: `Bearer ${secret}` }),
  lacks: () => nothing,
  lackedFields: () => nothing,
  errorKind: () => null,
};
