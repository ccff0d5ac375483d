/** Somebody who waits for the event loop to have looked at all sockets. */
export interface PollWaiter {
  onPolled(): void;
}

/**
 * Holds calls back until the event loop has polled all sockets once more. A vendor that has closed an idle connection
 * is then known to have done so, and the call goes over another: so nothing is written to a closed connection, and
 * nothing ever has to be sent twice. What came in during the present turn may lie behind this turn's poll, hence the
 * poll of the next one. All who wait in one turn share two callbacks.
 */
export class AfterNextPoll {
  #joining: PollWaiter[] = [];
  /** Counts the turns in which a batch was closed: what was there before has been looked at when it is called. */
  turn = 0;

  add(waiter: PollWaiter): void {
    this.#joining.push(waiter);
    if (this.#joining.length === 1) setImmediate(this.#closeBatch);
  }

  readonly #closeBatch = (): void => {
    const batch = this.#joining;
    this.#joining = [];
    this.turn += 1;
    setImmediate(() => {
      for (const waiter of batch) waiter.onPolled();
    });
  };
}
