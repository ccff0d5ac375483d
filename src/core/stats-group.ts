/** What `group_by` of `GET /v1/stats` may name. */
export const statsGroups = ['provider', 'model', 'mode', 'day'] as const;
export type StatsGroup = (typeof statsGroups)[number];
