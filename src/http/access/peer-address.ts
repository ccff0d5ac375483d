/** Who sent a request. A socket forgets its peer once the client has left: Fastify's type does not say so. */
export function peerAddress({ ip }: { readonly ip: string | undefined }): string {
  return ip ?? 'gone';
}
