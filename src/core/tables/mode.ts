/** The tiers a client can name (SPEC 4.5). */
export const tierNames = ['cheap', 'balanced', 'premium'] as const;
export type TierName = (typeof tierNames)[number];
export type Mode = `gw/${TierName}`;

/** What a client names a tier by. */
export const modeOf = (tier: TierName): Mode => `gw/${tier}`;

/** Public mode strings in the order `GET /v1/models` lists them. */
export const modes: readonly Mode[] = tierNames.map(modeOf);

export interface ParsedMode {
  readonly mode: Mode;
  readonly tier: TierName;
  /** True when the name was written with the prefix from before the rename. */
  readonly legacy: boolean;
}

/**
 * Reads the `model` field. `legacyName` is the service's former name while its surface is accepted,
 * else null. Returns null for anything that is not a mode.
 */
export function parseMode(model: string, legacyName: string | null): ParsedMode | null {
  const slash = model.indexOf('/');
  if (slash < 0) return null;
  const prefix = model.slice(0, slash);
  const tier = tierNames.find((name) => name === model.slice(slash + 1));
  if (tier === undefined) return null;
  if (prefix === 'gw') return { mode: modeOf(tier), tier, legacy: false };
  if (legacyName !== null && prefix === legacyName) return { mode: modeOf(tier), tier, legacy: true };
  return null;
}
