import type { Candidate, HeldKey } from '../candidate.ts';
import type { Feature } from '../capability.ts';
import type { ProviderName } from '../provider-name.ts';
import type { Mode, TierName } from '../tables/mode.ts';
import type { RoutingTables } from '../tables/tables.ts';
import type { ChatRequest } from './chat-request.ts';
import type { ResidencyBinder, ResidencyBound } from './residency.ts';

/** `X-Gateway-Override-Model: <provider>[/<label or key id>]:<model>`, taken apart. */
export interface Override {
  readonly provider: ProviderName;
  /** Which of several self_hosted keys: its label or id; null: the newest. */
  readonly selector: string | null;
  readonly model: string;
}

/** The request headers of SPEC 4.5 after validation. */
export interface ChatOptions {
  /** Null: the client did not opt in to the cache. Otherwise clamped to [60, 86400]. */
  readonly cacheTtlSeconds: number | null;
  readonly override: Override | null;
  /** In a `ChatCall` what it is bound to, whoever says so. */
  readonly residency: ResidencyBound;
  /** Per-attempt limit asked for, clamped to [1, 300] s; null: the tables' default. */
  readonly timeoutMs: number | null;
}

/** Where a request's span lies, as far as the story needs to know. */
export interface CallTrace {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** One chat request, whole and immutable: everything that the story needs to know of it. */
export interface ChatCall {
  readonly userId: string;
  readonly requestId: string;
  readonly request: ChatRequest;
  /** As it was sent, of a short one that asks for the cache; else null. */
  readonly bodyText: string | null;
  readonly options: ChatOptions;
  /** By whose word it is bound to its residency; null where it is not. */
  readonly residencyBoundBy: ResidencyBinder | null;
  readonly mode: Mode;
  readonly tier: TierName;
  /** The tables it began with and keeps. */
  readonly tables: RoutingTables;
  /** Request entry, monotonic milliseconds. */
  readonly enteredAtMs: number;
  /** Null when it has no trace: nothing is traced, or it is not recorded and nobody else knows a trace of it. */
  readonly trace: CallTrace | null;
}

/** How long one attempt may take, or the wait for an equal request's; milliseconds. */
export function attemptLimitMs(call: ChatCall): number {
  return call.options.timeoutMs ?? call.tables.document.timeouts.attempt_seconds * 1000;
}

/** How many choices the client asked for. */
export function choicesAsked({ request }: ChatCall): number {
  return request.n ?? 1;
}

/** When the time of the whole request is over, monotonic milliseconds. */
export function requestDueMs({ enteredAtMs, tables }: ChatCall): number {
  return enteredAtMs + tables.document.timeouts.request_seconds * 1000;
}

/** The `mode` of the gateway block and of the log row (SPEC 2.4). */
export function modeLabel(call: ChatCall): string {
  return call.options.override === null ? call.mode : 'override';
}

/** The caller's keys plus what is known of candidates beyond the tables. */
export interface PlanInput {
  readonly keys: readonly HeldKey[];
  readonly isHeldBack: (candidate: Candidate) => boolean;
  /** What the candidate's vendor has no words for, whatever its model can do. */
  readonly lacks: (candidate: Candidate) => readonly Feature[];
}
