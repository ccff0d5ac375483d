import type { CompletedCommand, Word } from './completion-table.ts';

/** For both shells: a text that means itself. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

type Arm = readonly [names: readonly string[], run: string];

/** `case` of a shell: what is done where a text is one of these names. What is done in the same way is one line. */
function caseOf(subject: string, arms: readonly Arm[]): string {
  const namesByRun = new Map<string, string[]>();
  for (const [names, run] of arms) namesByRun.set(run, [...(namesByRun.get(run) ?? []), ...names]);
  const lines = [...namesByRun]
    .filter(([, names]) => names.length > 0)
    .map(([run, names]) => `    ${names.map(quoted).join('|')}) ${run} ;;`);
  return [`  case "${subject}" in`, ...lines, '  esac'].join('\n');
}

/** How a shell is told of its words. */
interface ShellDialect {
  /** Offers these, less what does not fit what is typed, and ends. */
  readonly offer: (words: readonly Word[]) => string;
  /** Offers what the shell offers by itself: names of files. */
  readonly offerFiles: string;
}

const wordsOf = (choices: readonly string[]): readonly Word[] => choices.map((text) => ({ text, about: '' }));

/**
 * The same in both shells, of which each has read the words before the one that is typed: `at` is the command they
 * name, `before` the last of them, `count` how many arguments it has already.
 */
function decisions(table: readonly CompletedCommand[], { offer, offerFiles }: ShellDialect): string {
  const values = table.flatMap(({ path, values: taken }) =>
    taken.map(
      ({ option, choices }): Arm => [
        [`${path} ${option}`],
        choices.length > 0 ? offer(wordsOf(choices)) : offerFiles,
      ],
    ),
  );
  const args = table.flatMap(({ path, args: places }) =>
    places.flatMap((choices, place): Arm[] =>
      choices.length === 0 ? [] : [[[`${path} ${place}`], offer(wordsOf(choices))]],
    ),
  );
  const commands = table.map(
    ({ path, commands: below }): Arm => [below.length === 0 ? [] : [path], offer(below)],
  );
  const options = table.map(({ path, options: own }): Arm => [own.length === 0 ? [] : [path], offer(own)]);
  return [
    caseOf('$at $before', values),
    `  if [[ "$typed" == -* ]]; then\n${caseOf('$at', options).replaceAll(/^/gm, '  ')}\n  fi`,
    caseOf('$at $count', args),
    caseOf('$at', commands),
    `  ${offerFiles}`,
  ].join('\n');
}

/** Reads the words before the typed one: a command leads there, and what an option takes is none of its arguments. */
function reading(table: readonly CompletedCommand[], word: string): string {
  const paths = table.map(({ path }) => path).filter((path) => path !== '');
  const taking = table.flatMap(({ path, values }) => values.map(({ option }) => `${path} ${option}`));
  return [
    caseOf(`$at $before`, [[taking, `before="${word}"; continue`]]).replaceAll(/^/gm, '  '),
    `    before="${word}"`,
    `    next="\${at:+$at }${word}"`,
    '    case "$next" in',
    `      ${paths.map(quoted).join('|')}) at="$next"; count=0 ;;`,
    `      *) [[ "${word}" == -* ]] || count=$((count + 1)) ;;`,
    '    esac',
  ].join('\n');
}

/** Bash takes an e-mail address apart, so that its words are not those of the command line: they are read anew. */
export function bashCompletion(table: readonly CompletedCommand[]): string {
  const dialect: ShellDialect = {
    offer: (words) =>
      `COMPREPLY=($(compgen -W ${quoted(words.map(({ text }) => text).join(' '))} -- "$typed")); return`,
    offerFiles: 'return',
  };
  return `# bash completion of model-gateway; load it with: source <(model-gateway completion bash)
_model_gateway() {
  local line="\${COMP_LINE:0:COMP_POINT}" typed='' at='' before='' count=0 next word given
  COMPREPLY=()
  read -ra given <<< "\${line#*"\${COMP_WORDS[0]}"}"
  if [[ "$line" != *[[:space:]] ]]; then
    typed="\${given[-1]}"
    unset 'given[-1]'
  fi
  for word in "\${given[@]}"; do
${reading(table, '$word')}
  done
${decisions(table, dialect)}
}
complete -o default -F _model_gateway model-gateway
`;
}

export function zshCompletion(table: readonly CompletedCommand[]): string {
  const described = ({ text, about }: Word): string =>
    quoted(about === '' ? text : `${text.replaceAll(':', '\\:')}:${about}`);
  const dialect: ShellDialect = {
    offer: (words) => `offered=(${words.map(described).join(' ')}); _describe model-gateway offered; return`,
    offerFiles: '_files; return',
  };
  return `#compdef model-gateway
# zsh completion of model-gateway; load it with: source <(model-gateway completion zsh)
_model_gateway() {
  local typed="\${words[CURRENT]}" at='' before='' count=0 next word
  local -a offered
  for word in "\${(@)words[2,CURRENT-1]}"; do
${reading(table, '$word')}
  done
${decisions(table, dialect)}
}
if [[ "$funcstack[1]" == _model_gateway ]]; then _model_gateway "$@"; else compdef _model_gateway model-gateway; fi
`;
}
