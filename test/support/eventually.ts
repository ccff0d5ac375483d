/** Asks again until `probe` is satisfied; for facts that follow an answer rather than precede it. */
export async function eventually<T>(probe: () => Promise<T | undefined>, limitMs = 5_000): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not so after ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Resolves with a counter's value once it has not moved for `stillMs`. */
export async function untilStill(read: () => number, stillMs = 400, limitMs = 15_000): Promise<number> {
  let seen = read();
  let since = performance.now();
  return eventually(() => {
    const value = read();
    if (value !== seen) {
      seen = value;
      since = performance.now();
    }
    return Promise.resolve(performance.now() - since > stillMs ? value : undefined);
  }, limitMs);
}
