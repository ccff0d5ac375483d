import { releaseNotes } from './changelog.ts';
import type { ReleaseFacts } from './facts.ts';
import { tagOf } from './facts.ts';

export interface Check {
  readonly name: string;
  /** Why nothing may be released, with what to do; null where all is well. */
  readonly problem: string | null;
}

/** https://semver.org without build metadata, which image tags cannot hold. */
const semver = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;
/** As many paths as are worth reading. */
const SHOWN_PATHS = 5;

/** What has to hold before anything is published. */
export function releaseChecks(facts: ReleaseFacts): Check[] {
  const { version, revision, uncommitted, tags, startedBy, registry, changelog, stale } = facts;
  const tag = tagOf(version);
  const tagged = tags[tag];
  return [
    {
      name: 'the version is one of Semantic Versioning',
      problem: semver.test(version) ? null : `package.json says ${version}`,
    },
    {
      name: 'everything is committed',
      problem: uncommitted.length === 0 ? null : shown(uncommitted.map((line) => line.slice(3))),
    },
    {
      name: 'what follows from other files is up to date',
      problem: stale.length === 0 ? null : `${shown(stale)}: npm run generate && npm run render:chart`,
    },
    {
      name: `CHANGELOG.md has a section [${version}]`,
      problem:
        releaseNotes(changelog, version) === null
          ? `give what is under [Unreleased] the heading "## [${version}] - ${today(facts)}"`
          : null,
    },
    {
      name: `the tag ${tag} is new, or at this commit`,
      problem:
        tagged === undefined || tagged === revision
          ? null
          : `it is at ${tagged.slice(0, 12)}: raise the version in package.json`,
    },
    {
      name: 'no other tag started this',
      problem:
        startedBy === null || startedBy === tag
          ? null
          : `${startedBy} did: tag a commit whose package.json has that version, or ${tag}`,
    },
    {
      name: 'there is a registry to publish to, where a tag started this',
      problem:
        startedBy === null || registry !== null
          ? null
          : 'set the variable RELEASE_REGISTRY of the repository, such as registry.example.com/team',
    },
  ];
}

function shown(paths: readonly string[]): string {
  const more = paths.length - SHOWN_PATHS;
  return paths.slice(0, SHOWN_PATHS).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

const today = ({ committedAt }: ReleaseFacts): string =>
  new Date(committedAt * 1000).toISOString().slice(0, 10);
