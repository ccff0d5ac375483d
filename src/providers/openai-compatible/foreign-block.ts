/**
 * The same object where it holds no other gateway's block, else a copy without it. Clients join the blocks of one
 * answer: ours is the only one of that name, wherever it stands.
 */
export function withoutForeignBlock<T extends { readonly gateway?: unknown }>(given: T): T {
  if (!Object.hasOwn(given, 'gateway')) return given;
  const { gateway: _foreign, ...rest } = given;
  return rest as T;
}
