import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const typeA = 1;
const nxdomain = 3;
const truncated = 0x0200;

export type Reply = readonly string[] | 'nxdomain' | 'cut' | 'silence';

export interface NameServer {
  readonly server: string;
  questions(): number;
  close(): void;
}

/** A name server on loopback; `reply` is asked for each question with the family that is wanted. */
export async function startNameServer(reply: (family: 4 | 6, name: string) => Reply): Promise<NameServer> {
  let questions = 0;
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    questions += 1;
    const end = query.indexOf(0, 12) + 5;
    const answers = reply(query.readUInt16BE(end - 4) === typeA ? 4 : 6, nameIn(query.subarray(12, end - 4)));
    if (answers !== 'silence') socket.send(response(query.subarray(0, end), answers), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions: () => questions,
    close: () => socket.close(),
  };
}

/** The labels of a question. */
function nameIn(question: Buffer): string {
  const labels: string[] = [];
  for (let at = 0; (question[at] ?? 0) > 0; at += 1 + (question[at] as number)) {
    labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] as number)));
  }
  return labels.join('.').toLowerCase();
}

/** RFC 1035 section 4, one question and its addresses. */
export function response(query: Buffer, answers: readonly string[] | 'nxdomain' | 'cut'): Buffer {
  const records = typeof answers === 'string' ? [] : answers;
  const head = Buffer.from(query);
  head.writeUInt16BE(
    0x8180 | (answers === 'nxdomain' ? nxdomain : 0) | (answers === 'cut' ? truncated : 0),
    2,
  );
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  const type = query.subarray(query.length - 4, query.length - 2);
  const parts = records.map((text) => {
    const bytes = Buffer.from(text.includes('.') ? text.split('.').map(Number) : [...Buffer.alloc(15), 1]);
    return Buffer.concat([
      Buffer.from('c00c', 'hex'),
      type,
      Buffer.from('00010000000000', 'hex'),
      Buffer.of(bytes.length),
      bytes,
    ]);
  });
  return Buffer.concat([head, ...parts]);
}
