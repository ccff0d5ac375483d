/** Of text, or in bytes: beyond it a step of a request ends its turn. 20 MB take a tenth of a second each time. */
export const longestOfOneTurn = 1024 * 1024;

/**
 * Calls `next` when the event loop has served what had come meanwhile: a large request takes several turns, so that it
 * holds nobody up for as long as all of them. The first callback still belongs to the present turn.
 */
export function inLaterTurn(next: () => void): void {
  setImmediate(() => setImmediate(next));
}
