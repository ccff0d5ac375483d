import type { Candidate } from '../core/candidate.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { Provider } from '../providers/provider.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import type { AnswerCache } from './answer-cache.ts';
import type { CandidateBreakers } from './candidate-breakers.ts';
import type { DueList } from './due-list.ts';
import type { ProviderEndpoint } from './endpoints.ts';
import type { LaterTurns } from './later-turn.ts';
import type { Clock, OpenKey, RequestForms, RequestLog, UpstreamTransport } from './ports.ts';
import type { ChatTelemetry } from './telemetry-port.ts';

/** What the story needs of the world, given once. */
export interface ChatDeps {
  readonly transport: UpstreamTransport;
  readonly providers: Readonly<Record<ProviderName, Provider>>;
  readonly endpointOf: (candidate: Pick<Candidate, 'provider' | 'key'>) => ProviderEndpoint | null;
  readonly openKey: OpenKey;
  readonly requestForms: RequestForms;
  readonly cache: AnswerCache;
  readonly requestLog: RequestLog;
  readonly breakers: CandidateBreakers;
  /** What answers may take of the memory, and take now. */
  readonly answers: AnswerBudgets;
  readonly telemetry: ChatTelemetry;
  /** Where the steps of large requests wait for their turns; the process has one. */
  readonly later: LaterTurns;
  readonly clock: Clock;
  /** By the same clock: the exchanges under way, until their time is up; the process has one. */
  readonly dues: DueList;
  readonly newId: () => string;
  /** Receives bugs of ours whose request goes on: with another candidate, or to an end by an error event. */
  readonly reportBug: (cause: unknown, call: ChatCall) => void;
  /** Receives a stored key that does not open: tampered with, or sealed with a key that is gone. */
  readonly reportUnopenedKey: (keyId: string, asker: Pick<ChatCall, 'userId' | 'requestId'>) => void;
}
