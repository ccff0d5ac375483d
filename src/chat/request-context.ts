import type { ChatCall } from '../core/request/chat-call.ts';
import type { AnswerHold } from './answer-budget.ts';
import type { ChatDeps } from './chat-deps.ts';
import type { Client } from './client-stream.ts';
import type { Settlement } from './settlement.ts';

/** One request under way: what all its exits share. */
export interface RequestContext {
  readonly call: ChatCall;
  readonly client: Client;
  readonly settlement: Settlement;
  readonly deps: ChatDeps;
  /** What its whole answer takes of the room for large ones, until it is on its way to the client. */
  readonly room: AnswerHold;
}
