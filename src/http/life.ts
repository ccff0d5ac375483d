import type { CancelReason } from '../chat/client-stream.ts';

/**
 * Where the process stands between its first request and its last: who is being served, and whether new
 * work is taken.
 */
export class Life {
  readonly #active = new Set<AbortController>();
  /** SIGTERM was seen: readiness is off, requests are still served. */
  draining = false;
  /** The drain delay is over: new chat requests are refused. */
  closing = false;

  /** Answers carry `Connection: close`, so that kept-alive clients move on before they would be refused. */
  get leaving(): boolean {
    return this.draining || this.closing;
  }

  /** Chat requests under way. */
  get activeCount(): number {
    return this.#active.size;
  }

  add(controller: AbortController): void {
    this.#active.add(controller);
  }

  remove(controller: AbortController): void {
    this.#active.delete(controller);
  }

  /** The grace period is over: whoever is left gets an error event. */
  cutAll(): void {
    const reason: CancelReason = 'drain';
    for (const controller of this.#active) controller.abort(reason);
  }
}
