/** The largest value of a Postgres `bigint`: ids of rows, sums. */
export const largestBigint = 2n ** 63n - 1n;
