import { queueReader } from '../../../src/adapters/system/socket-queues.ts';
import { SentAnswers } from '../../../src/http/answers/sent-answers.ts';
import { UnreadAnswers } from '../../../src/http/answers/unread-answers.ts';

/** As with a heap of 384 MiB. */
const roomBytes = 24 * 1024 * 1024;
const sentBytes = 48 * 1024 * 1024;

/** Room for answers that clients do not take; what the kernel has of them is asked of this one. */
export function unreadAnswers(limitBytes = roomBytes): UnreadAnswers {
  return new UnreadAnswers(limitBytes, new SentAnswers(sentBytes, queueReader));
}
