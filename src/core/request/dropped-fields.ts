/** Names in one report: more than any client of ours leaves, and a row stays small whatever was sent. */
const maxNames = 32;
/** Names of fields as APIs have them. What a stranger may write as a name is content, and stays out of rows. */
const plainName = /^[\w.[\]]{1,80}$/;
const oddName = '(other)';

/** Names of left-out fields as a report shows them: each once, plain ones only, the rest as `(other)`; bounded. */
export function shownFields(dropped: readonly string[]): string[] {
  const shown = new Set<string>();
  for (const name of dropped) {
    if (shown.size >= maxNames) break;
    shown.add(plainName.test(name) ? name : oddName);
  }
  return [...shown];
}
