/** The oldest Node that runs it; `engines` in package.json says the same (a test compares them). */
export const oldestNode = [22, 19] as const;

/** Why this Node cannot run it, in words for the operator; null: it can. `version` is `process.versions.node`. */
export function whyTooOld(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldestNode;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return `Node ${oldestNode.join('.')} or newer is needed, this is ${version}: install Node 24.`;
}
