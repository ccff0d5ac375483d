/** What the binary ends with, and when. The help shows it, and a test compares docs/commands.md. */
export const exitRows = [
  ['done', 0, 'done'],
  ['failed', 1, 'it could not be done, or what was checked is not good; the message says why'],
  ['unproven', 3, 'a report is whole, but without `--public-key` nothing proves who signed it'],
  ['usage', 64, 'unknown command or option, or an argument that cannot be read'],
  ['broken', 65, 'a report is not as it was signed; the message names the first broken link'],
  ['notFound', 66, 'what was named does not exist'],
  ['away', 69, 'the database cannot be reached; try again later'],
] as const;

type ExitName = (typeof exitRows)[number][0];

/** The codes by name; 64 and up mean what they mean in sysexits(3). */
export const exitCodes = Object.fromEntries(exitRows) as Readonly<Record<ExitName, number>>;

/** A command that could not do what it was asked for: its message goes to stderr, its code to the caller. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(exit: ExitName, message: string) {
    super(message);
    this.exitCode = exitCodes[exit];
  }
}
