/**
 * Values by texts, a level for each: texts that are at hand are found without being put together to a key, which takes
 * four times as long.
 */
export class LabelTree<Value> {
  readonly #below = new Map<string, LabelTree<Value>>();
  #value: Value | undefined;

  get(labels: readonly string[]): Value | undefined {
    let node: LabelTree<Value> | undefined = this;
    for (let at = 0; at < labels.length; at += 1) {
      node = node.#below.get(labels[at] as string);
      if (node === undefined) return undefined;
    }
    return node.#value;
  }

  set(labels: readonly string[], value: Value): void {
    let node: LabelTree<Value> = this;
    for (const label of labels) {
      let next = node.#below.get(label);
      if (next === undefined) {
        next = new LabelTree<Value>();
        node.#below.set(label, next);
      }
      node = next;
    }
    node.#value = value;
  }
}
