import fs from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitepress'
import { fileAt, github, pages, repository, sidebar, unlisted, urlPath } from '../pages'
import { searchRoles } from './search'

// slugify gives a heading the anchor that it has on GitHub.
function slugify(heading: string): string {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '').replace(/ /g, '-')
}

// target returns where a link of a file leads on the site: links to pages stay here, links
// to other files of the repository go to GitHub.
function target(file: string, href: string): string {
  if (/^([a-z]+:|\/\/|#)/i.test(href)) return href
  const [name, anchor] = href.split('#')
  const linked = path.posix.normalize(path.posix.join(path.posix.dirname(file), decodeURI(name))).replace(/\/$/, '')
  const hash = anchor ? '#' + anchor : ''
  if (pages.has(linked)) return '/' + urlPath(linked) + hash
  const at = path.join(repository, linked)
  if (!fs.existsSync(at)) throw new Error(`${file}: there is no ${linked}`)
  return `${github}/${fs.statSync(at).isDirectory() ? 'tree' : 'blob'}/main/${linked}${hash}`
}

// bothPictures shows the picture for the colours of the site, not of the system: the switch
// of the site may differ.
function bothPictures(html: string): string {
  return html.replace(/<picture>\s*<source [^>]*srcset="([^"]*)">\s*<img ([^>]*?)src="([^"]*)"([^>]*)>\s*<\/picture>/g,
    '<img loading="lazy" class="in-dark" $2src="$1"$4><img loading="lazy" class="in-light" $2src="$3"$4>')
}

const icon = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#3451b2"/><path d="M4 5h8M8 5v7" stroke="#fff" stroke-width="2"/></svg>'

export default defineConfig({
  title: 'Toolmend',
  description: 'Checks every tool call that a model makes: a gateway for every language, and a library for Go, Python and TypeScript.',
  lang: 'en',
  base: process.env.SITE_BASE || '/',
  srcDir: '../..',
  outDir: '../../bin/site',
  srcExclude: ['!(docs)/**/*.md', ...unlisted],
  rewrites: urlPath,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  metaChunk: true,
  router: { prefetchLinks: false },
  vite: {
    publicDir: path.join(import.meta.dirname, '../public'),
    plugins: [searchRoles, {
      name: 'modules-of-pages',
      enforce: 'pre',
      // The pages are outside this folder, where no module would be found.
      resolveId(source, importer, options) {
        if (/^vue($|\/)/.test(source) && importer?.endsWith('.md')) {
          return this.resolve(source, import.meta.filename, { ...options, skipSelf: true })
        }
      },
    }],
  },
  markdown: {
    anchor: { slugify },
    image: { lazyLoading: true },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      md.core.ruler.push('repository_links', state => {
        for (const block of state.tokens) {
          if (block.type === 'code_block') block.type = 'fence' // indented code looks like any other
          if (block.type === 'html_block') block.content = bothPictures(block.content)
          if (block.info === 'promql') block.info = 'txt' // the highlighter does not know it
          for (const token of block.children ?? []) {
            if (token.type === 'link_open') token.attrSet('href', target(fileAt(state.env.relativePath), token.attrGet('href')!))
          }
        }
      })
    },
  },
  themeConfig: {
    nav: [{ text: 'Playground', link: '/playground' }],
    sidebar,
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          options: {
            // A name such as on_exhausted is one word, and its parts are words too. The page has
            // the text of these functions, so they use nothing outside of them.
            tokenize: text => (text.match(/[\p{L}\p{N}_]+/gu) ?? [])
              .flatMap(word => word.includes('_') ? [word, ...word.split('_').filter(Boolean)] : [word]),
          },
          searchOptions: {
            tokenize: text => text.match(/[\p{L}\p{N}_]+/gu) ?? [],
            fuzzy: term => term.length > 5 ? 0.15 : false,
            // Notes and history come after the pages that say how it is.
            boostDocument: (id: string) => /\/(decisions\/|CHANGELOG|CONTRIBUTING|parity)/.test(id) ? 0.3 : 1,
          },
        },
      },
    },
    socialLinks: [{ icon: 'github', link: github }],
  },
})
