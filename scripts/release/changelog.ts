/** What CHANGELOG.md says of a version, without its heading; null where it has no such section, or an empty one. */
export function releaseNotes(changelog: string, version: string): string | null {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => section.startsWith(`[${version}] - `));
  const text = found?.slice(found.indexOf('\n') + 1).trim() ?? '';
  return text === '' ? null : `${text}\n`;
}
