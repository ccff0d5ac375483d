import type { DueEntry } from '../../src/chat/due-list.ts';
import { DueList } from '../../src/chat/due-list.ts';

/** Rests whenever nobody waits, so that a timer that is left is that of somebody who should have left. */
export class RestingDues extends DueList {
  override leave(entry: DueEntry): void {
    super.leave(entry);
    this.rest();
  }
}
