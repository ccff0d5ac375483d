/** What one test of the matrix is about. */
export interface Cell {
  readonly client: string;
  /** The packages that make the client, with their versions. */
  readonly versions: string;
  readonly vendor: string;
  readonly scenario: string;
}

declare module 'vitest' {
  interface TaskMeta {
    cell?: Cell;
  }
}
