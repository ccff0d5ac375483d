/** Of a time of SQL: microseconds since the epoch. */
export const microsOf = (time: string): string => `(extract(epoch FROM ${time}) * 1000000)::bigint`;
