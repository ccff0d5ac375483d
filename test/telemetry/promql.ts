import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/** One metric that an expression selects, with the labels it matches on. */
export interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
}

export interface ParsedExpression {
  /** Source text around each syntax error. */
  readonly errors: readonly string[];
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `on`, `ignoring`, `group_left`. */
  readonly groupings: readonly string[];
}

function descendants(node: SyntaxNode, name: string): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  const walk = (at: SyntaxNode) => {
    if (at.name === name) found.push(at);
    for (let child = at.firstChild; child !== null; child = child.nextSibling) walk(child);
  };
  walk(node);
  return found;
}

/** Parses PromQL with Prometheus's own grammar. Grafana's variables are filled in first. */
export function parseExpression(expression: string): ParsedExpression {
  const text = expression.replaceAll('$__rate_interval', '5m').replace(/\$\{?\w+\}?(?=")/g, 'x');
  const top = parser.parse(text).topNode;
  const of = (node: SyntaxNode) => text.slice(node.from, node.to);
  const errors: string[] = [];
  top.cursor().iterate((node) => {
    if (node.type.isError) errors.push(text.slice(Math.max(0, node.from - 20), node.to + 20));
  });
  const selectors = descendants(top, 'VectorSelector').map((selector) => {
    const names = descendants(selector, 'Identifier').map(of);
    const matchers = descendants(selector, 'UnquotedLabelMatcher').map((matcher) => ({
      label: descendants(matcher, 'LabelName').map(of).join(),
      value: descendants(matcher, 'StringLiteral').map(of).join().slice(1, -1),
    }));
    return { metric: names[0] ?? '', labels: matchers.map(({ label }) => label), matchers };
  });
  const groupings = descendants(top, 'GroupingLabels').flatMap((list) =>
    descendants(list, 'LabelName').map(of),
  );
  return { errors, selectors, groupings };
}
