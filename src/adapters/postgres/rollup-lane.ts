import { crc32 } from 'node:zlib';

/** Times the lanes of one replica, they fit a smallint. */
const laneGroups = 8192;

/** The first of the `lanes` rollup lanes of a replica: writers of different lanes never wait for each other's rows. */
export function firstLane(replica: string, lanes: number): number {
  return (crc32(replica) % laneGroups) * lanes;
}
