import type { Socket } from 'node:net';

/** A request that is larger is written as head and body, and not put together first. */
const joinedWriteLength = 64 * 1024;
/** TLS keeps what it is given in one write, and twice more of it sealed, until its server has taken it. */
const firstPartBytes = 64 * 1024;
/** To seal a part of these takes TLS a millisecond. */
const largestPartBytes = 1024 * 1024;
/** A server that took a part so soon gets a larger one: with a turn of the loop for each, small ones take seconds. */
const soonMs = 100;

/** Writes one request. Of a body given as bytes the next part follows when the socket has passed the last one on. */
export function writeRequest(socket: Socket, head: string, body: string | Buffer): void {
  if (typeof body !== 'string') {
    socket.write(head, 'latin1');
    writeParts(socket, body, 0, firstPartBytes);
  } else if (body.length <= joinedWriteLength) socket.write(head + body, 'utf8');
  else {
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(body, 'utf8');
    socket.uncork();
  }
}

function writeParts(socket: Socket, body: Buffer, from: number, partBytes: number): void {
  const next = from + partBytes;
  const writtenAtMs = performance.now();
  socket.write(body.subarray(from, next), (error) => {
    if (error != null || next >= body.length) return;
    const isSoon = performance.now() - writtenAtMs < soonMs;
    writeParts(socket, body, next, isSoon ? Math.min(2 * partBytes, largestPartBytes) : firstPartBytes);
  });
}
