import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { choicesAsked } from '../core/request/chat-call.ts';
import type { ModelFacts } from '../core/tables/model-facts.ts';
import type { StreamContext } from '../providers/provider.ts';
import type { ChatDeps } from './chat-deps.ts';

/** What one attempt is translated by. Id and time are made when they are asked for: most vendors give them. */
export class AttemptTranslation implements StreamContext {
  readonly model: string;
  readonly facts: ModelFacts;
  readonly form: string | null;
  readonly maxEventBytes: number;
  readonly choices: number;
  readonly #candidate: Candidate;
  readonly #call: ChatCall;
  readonly #deps: Pick<ChatDeps, 'clock' | 'newId' | 'requestForms'>;
  #id: string | null = null;

  constructor(
    candidate: Candidate,
    call: ChatCall,
    deps: Pick<ChatDeps, 'clock' | 'newId' | 'requestForms'>,
    form = deps.requestForms.of(candidate.key.id),
  ) {
    this.model = candidate.model;
    this.facts = candidate.facts;
    this.form = form;
    this.maxEventBytes = call.tables.document.limits.event_bytes;
    this.choices = choicesAsked(call);
    this.#candidate = candidate;
    this.#call = call;
    this.#deps = deps;
  }

  get fallbackId(): string {
    this.#id ??= `chatcmpl-${this.#deps.newId()}`;
    return this.#id;
  }

  get createdSeconds(): number {
    return Math.floor(this.#deps.clock.wallMs() / 1000);
  }

  /** The same for another try, in the form that the server asked for. */
  in(form: string): AttemptTranslation {
    return new AttemptTranslation(this.#candidate, this.#call, this.#deps, form);
  }
}
