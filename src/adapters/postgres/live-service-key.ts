/** Of a row of `service_keys` under this name: whether the key is good, by the clock of Postgres. */
export const isLive = (key: string): string => `(${key}.expires_at IS NULL OR ${key}.expires_at > now())`;
