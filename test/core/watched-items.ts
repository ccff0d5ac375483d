export interface WatchedItems {
  readonly items: readonly object[];
  /** How often the watched field of each item was read. */
  readonly looks: readonly number[];
}

/** Three items of `fields` and, behind them, a field `name` that counts how often it is read. */
export function watchedItems(name: string, fields: object = {}): WatchedItems {
  const looks = [0, 0, 0];
  const items = looks.map((_none, index) =>
    Object.defineProperty({ ...fields }, name, {
      enumerable: true,
      get: () => {
        looks[index] = (looks[index] ?? 0) + 1;
        return 'user';
      },
    }),
  );
  return { items, looks };
}
