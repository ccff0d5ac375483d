/** Why `npm start` cannot go on: one line that also says what to do about it. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}
