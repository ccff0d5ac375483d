import { ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { checkNodeInternals } from '../../../src/http/connections/node-internals.ts';

test('this Node has all that is used of its inside', () => {
  expect(checkNodeInternals).not.toThrow();
});

test('a Node that keeps its responses elsewhere is refused, and what it lacks is named', () => {
  vi.spyOn(ServerResponse.prototype, 'assignSocket').mockImplementation(() => undefined);
  vi.spyOn(ServerResponse.prototype, 'detachSocket').mockImplementation(() => undefined);
  const lacked = 'socket._httpMessage, the event "socket" of responses';
  expect(checkNodeInternals).toThrow(`no longer has ${lacked}. Use Node 24.`);
  vi.restoreAllMocks();
});
