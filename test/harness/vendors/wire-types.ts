/** What the tests expect on the wire (SPEC 2 and 7); written from the contract, not imported from it. */

export interface Registration {
  readonly user_id: string;
  readonly email: string;
  readonly api_key: string;
  readonly shown_once: boolean;
}

export interface KeyRecord {
  readonly id: string;
  readonly provider: string;
  readonly residency: string;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly label: string | null;
  readonly created_at: string;
}

export interface GatewayBlock {
  readonly provider: string;
  readonly model: string;
  readonly mode: string;
  readonly cache_hit: boolean;
  readonly latency_ms: number;
  readonly cost_usd: string;
  readonly residency_actual: string;
  readonly request_id: string;
}

export interface Completion {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly message: Readonly<Record<string, unknown>> & { readonly role: string };
    readonly finish_reason: string;
  }[];
  readonly usage: Readonly<Record<string, unknown>> & {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
  readonly gateway: GatewayBlock;
}

export interface LogRowBody {
  readonly id: number;
  readonly mode: string;
  readonly provider: string;
  readonly model: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly latency_ms: number;
  readonly cost_usd: string;
  readonly cache_hit: boolean;
  readonly status: string;
  readonly error: string | null;
  readonly residency_requested: string | null;
  readonly residency_actual: string;
  readonly created_at: string;
}

export interface LogPage {
  readonly data: readonly LogRowBody[];
  readonly next_cursor: string | null;
}

export interface AttemptBody {
  readonly provider: string;
  readonly model: string;
  readonly status: number | null;
  readonly reason: string;
  readonly latency_ms: number;
}

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
    readonly request_id: string;
    readonly attempts?: readonly AttemptBody[];
  };
}

export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** ISO 8601 in UTC with microseconds and `Z` (SPEC 2.2, 2.5). */
export const microsecondsPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
/** Six-decimal fixed point (SPEC 2.4). */
export const costPattern = /^\d+\.\d{6}$/;
export const requestIdPattern = /^[A-Za-z0-9_-]{1,128}$/;
