import { anchorOf } from './anchor.ts';
import { chapters } from './pages.ts';

/** The path of a page without its ending, as VitePress wants it. */
const pathOf = (place: string): string => `/${place.replace(/\.md$/, '').replace(/(^|\/)index$/, '$1')}`;

const linksOf = () =>
  chapters().map(({ title, entries }) => ({
    text: title,
    items: entries.map((entry) => ({ text: entry.title, link: pathOf(entry.page.place) })),
  }));

/** What VitePress is told; a link that leads nowhere ends its build. */
export const siteConfig = {
  title: 'Model Gateway',
  description:
    'Self-hosted, Kubernetes-native LLM gateway in the OpenAI Chat Completions shape, bring-your-own-key',
  lang: 'en',
  // None: a browser that is not told asks for one that is not there.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // The documents hold Markdown only: what looks like a tag is text.
  markdown: { html: false, anchor: { slugify: anchorOf } },
  themeConfig: {
    // In the reader's browser: nothing is asked of anybody.
    search: { provider: 'local' },
    sidebar: linksOf(),
    nav: [
      { text: 'Quick start', link: '/quick-start' },
      { text: 'API', link: '/api' },
      { text: 'Operations', link: '/operations' },
    ],
    outline: [2, 3],
  },
};
