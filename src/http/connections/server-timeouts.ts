/**
 * How long a client may take with the headers, and with the whole of a request, on either port: the largest body in
 * that time is 5.6 Mbit/s, and whoever is slower holds a place for longer than most answers take.
 */
export const headersTimeoutMs = 15_000;
export const requestTimeoutMs = 30_000;
/** Those who take longer are looked for this often. */
export const connectionsCheckMs = 2_000;
