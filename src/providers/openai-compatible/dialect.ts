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
