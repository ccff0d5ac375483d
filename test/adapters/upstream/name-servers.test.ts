/** Questions to name servers, over UDP alone, and what comes back. */
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { AddressFamily } from '../../../src/adapters/upstream/dns-message.ts';
import {
  isHostName,
  maxMessageBytes,
  readNameAnswer,
  writeQuestion,
} from '../../../src/adapters/upstream/dns-message.ts';
import { askNameServers } from '../../../src/adapters/upstream/name-servers.ts';
import { response } from './name-server.ts';

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** What is sent to a question, one datagram after the other; null: nothing. */
type Answer = (question: Buffer) => Buffer | readonly Buffer[] | null;

/** A server that answers the questions in turn as these say. */
const server = (...answers: readonly Answer[]) => serverOn(0, ...answers);

/** The same on this port; 0: any free one. */
async function serverOn(place: number, ...answers: readonly Answer[]) {
  const questions: Buffer[] = [];
  const socket: Socket = createSocket('udp4');
  closing.push(() => socket.close());
  socket.on('message', (question, { port, address }) => {
    const answer = answers[Math.min(questions.length, answers.length - 1)]?.(question) ?? [];
    questions.push(question);
    for (const datagram of [answer].flat()) socket.send(datagram, port, address);
  });
  socket.bind(place, '127.0.0.1');
  await once(socket, 'listening');
  return { at: `127.0.0.1:${socket.address().port}`, questions };
}

/** The question alone, without what says that answers may be long. */
function asked(question: Buffer): Buffer {
  return question.subarray(0, question.indexOf(0, 12) + 5);
}

const found =
  (...addresses: string[]) =>
  (question: Buffer): Buffer =>
    response(asked(question), addresses);

function withCode(code: number) {
  return (question: Buffer): Buffer => {
    const answer = Buffer.from(response(asked(question), []));
    answer.writeUInt16BE(0x8180 | code, 2);
    return answer;
  };
}

function ask(servers: string[], name = 'host.example', family: AddressFamily = 4) {
  return new Promise<readonly string[] | string>((resolve) => {
    askNameServers(servers, name, family, (error, addresses) => resolve(error?.code ?? addresses));
  });
}

describe('a name server', () => {
  test.each<[what: string, answers: readonly Answer[], told: readonly string[] | string, questions: number]>([
    ['that knows the name', [found('10.0.0.1', '10.0.0.2')], ['10.0.0.1', '10.0.0.2'], 1],
    ['that denies it', [withCode(3)], 'ENOTFOUND', 1],
    ['that has no address of this family', [found()], 'ENODATA', 1],
    ['in trouble, both times', [withCode(2)], 'ESERVFAIL', 2],
    ['that refuses, both times', [withCode(5)], 'EREFUSED', 2],
    ['that refuses long answers', [withCode(1), found('10.0.0.1')], ['10.0.0.1'], 2],
    ['that loses a question', [() => null, found('10.0.0.1')], ['10.0.0.1'], 2],
  ])('%s', async (_what, answers, told, questions) => {
    const one = await server(...answers);
    expect(await ask([one.at])).toEqual(told);
    expect(one.questions).toHaveLength(questions);
  });

  test.each([
    ['is in trouble', withCode(2)],
    ['refuses', withCode(5)],
    ['says nothing', () => null],
  ])('that %s is passed over for the next', async (_what, answer) => {
    const [bad, good] = [await server(answer), await server(found('10.0.0.1'))];
    expect(await ask([bad.at, good.at])).toEqual(['10.0.0.1']);
    expect(bad.questions).toHaveLength(1);
  });

  test.each([
    ['has no address that can be reached', '255.255.255.255'],
    ['is of a network that is not there', 'fe80::1'],
  ])('that %s is passed over at once, and ends nothing', async (_what, address) => {
    const good = await server(found('10.0.0.1'));
    expect(await ask([address, good.at])).toEqual(['10.0.0.1']);
    expect(await ask([address])).toBe('ECONNREFUSED');
  });

  test('that says nothing is asked last for the next name', async () => {
    const [silent, good] = [await server(() => null), await server(found('10.0.0.1'))];
    const servers = [silent.at, good.at];
    expect(await ask(servers)).toEqual(['10.0.0.1']);
    expect(await ask(servers)).toEqual(['10.0.0.1']);
    expect(silent.questions).toHaveLength(1);
  });

  test('that is not there is passed over at once', async () => {
    const gone = createSocket('udp4');
    gone.bind(0, '127.0.0.1');
    await once(gone, 'listening');
    const { port } = gone.address();
    gone.close();
    const good = await server(found('10.0.0.1'));
    expect(await ask([`127.0.0.1:${port}`, good.at])).toEqual(['10.0.0.1']);
    expect(await ask([`127.0.0.1:${port}`])).toBe('ECONNREFUSED');
  });

  test('whose answer is cut is taken by what came, and is not asked over TCP', async () => {
    const cut = (addresses: readonly string[]) => (question: Buffer) => {
      const answer = Buffer.from(response(asked(question), addresses));
      answer.writeUInt16BE(0x8380, 2);
      return answer;
    };
    let connections = 0;
    const tcp = createServer(() => (connections += 1));
    closing.push(() => tcp.close());
    // First: that port is far more often taken than the same one of UDP.
    await once(tcp.listen(0, '127.0.0.1'), 'listening');
    const { port } = tcp.address() as AddressInfo;
    expect(port).toBeGreaterThan(0);
    const full = await serverOn(port, cut(['10.0.0.1']));
    const empty = await server(cut([]));
    expect(await ask([full.at])).toEqual(['10.0.0.1']);
    expect(await ask([empty.at])).toBe('ETRUNCATED');
    expect(await ask([empty.at, full.at])).toEqual(['10.0.0.1']);
    expect(connections).toBe(0);
  });

  test('is heard only to the question that it was asked', async () => {
    const one = await server((question) => {
      const id = question.readUInt16BE(0);
      const otherId = Buffer.from(found('192.0.2.1')(question));
      otherId.writeUInt16BE(id ^ 1, 0);
      const otherName = found('192.0.2.2')(writeQuestion(id, 'other.example', 4, false));
      return [otherId, otherName, Buffer.alloc(0), Buffer.from('rubbish'), found('10.0.0.1')(question)];
    });
    expect(await ask([one.at])).toEqual(['10.0.0.1']);
    expect(one.questions).toHaveLength(1);
  });

  test('is told no name that is none, and others go on', async () => {
    const one = await server(found('10.0.0.1'));
    for (const name of [
      '',
      'a..b',
      `${'x'.repeat(64)}.example`,
      `${'a.'.repeat(130)}example`,
      'ä'.repeat(40),
    ])
      expect(await ask([one.at], name)).toBe('ENOTFOUND');
    expect(one.questions).toEqual([]);
  });

  test('is not waited for by whoever has given up', async () => {
    const one = await server(() => null);
    let told = 0;
    const giveUp = askNameServers([one.at], 'host.example', 4, () => (told += 1));
    giveUp();
    giveUp();
    expect(await ask([(await server(found('10.0.0.1'))).at])).toEqual(['10.0.0.1']);
    expect(told).toBe(0);
  });
});

describe('an answer', () => {
  const question = writeQuestion(7, 'Host.Example', 6, true);

  test('says how long it may be', () => {
    expect(question.readUInt16BE(question.length - 8)).toBe(maxMessageBytes);
  });

  test('may spell the name in its own way', () => {
    expect(readNameAnswer(response(asked(question), ['::1']), 7, 'host.example', 6)).toEqual({
      code: 0,
      addresses: ['::1'],
      isCut: false,
    });
  });

  test.each([
    ['of another id', (answer: Buffer) => answer.writeUInt16BE(8, 0)],
    ['that is a question', (answer: Buffer) => answer.writeUInt16BE(0x0100, 2)],
    ['with two questions', (answer: Buffer) => answer.writeUInt16BE(2, 4)],
    ['to another name', (answer: Buffer) => answer.write('j', 13)],
    ['to another type', (answer: Buffer) => answer.writeUInt16BE(1, asked(question).length - 4)],
  ])('%s is none', (_what, change) => {
    const answer = Buffer.from(response(asked(question), ['::1']));
    change(answer);
    expect(readNameAnswer(answer, 7, 'host.example', 6)).toBeNull();
  });

  test('of thousands of records is read as far as any name is tried', () => {
    const answer = response(asked(question), Array(4000).fill('::1'));
    expect(readNameAnswer(answer, 7, 'host.example', 6)?.addresses.length).toBeLessThan(100);
  });

  test('of any bytes, and cut anywhere, throws nothing', () => {
    const whole = response(asked(question), ['::1', '::1', '::1']);
    for (let end = 0; end <= whole.length; end += 1)
      expect(() => readNameAnswer(whole.subarray(0, end), 7, 'host.example', 6)).not.toThrow();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(whole.length), (noise, at) => {
        const bytes = Buffer.concat([whole.subarray(0, at), noise]);
        const read = readNameAnswer(bytes, 7, 'host.example', 6);
        for (const address of read?.addresses ?? []) expect(address).toMatch(/^[0-9a-f:.]+$/);
      }),
    );
  });

  test('is asked for of every name that a host may have', () => {
    const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 3 }), (labels) => {
        const name = labels.join('.');
        expect(isHostName(name)).toBe(true);
        const answer = response(asked(writeQuestion(9, name, 4, true)), ['192.0.2.1']);
        expect(readNameAnswer(answer, 9, name, 4)).toEqual({
          code: 0,
          addresses: ['192.0.2.1'],
          isCut: false,
        });
      }),
    );
  });
});
