/** Runs `work` after all that was handed in before has ended, well or not. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** For what must not happen at once: each waits for its turn. */
export function oneAtATime(): Turn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
