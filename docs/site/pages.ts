// The pages of the site, from nav.json: which Markdown file is where, and its title.
import fs from 'node:fs'
import path from 'node:path'

export const repository = path.resolve(import.meta.dirname, '../..')
export const github = 'https://github.com/toolmend/toolmend'

interface Section {
  text: string
  pages: string[] // files of the repository, each an entry of the sidebar; the last part of one may have a *
  also: string[] // likewise, without an entry: other pages link to them
}

const sections: Section[] = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, 'nav.json'), 'utf8'))

// files returns the files that an entry of nav.json stands for, in order: none if they do
// not exist.
function files(entry: string): string[] {
  const dir = path.posix.dirname(entry)
  const [before, after] = path.posix.basename(entry).split('*')
  if (after === undefined) return fs.existsSync(path.join(repository, entry)) ? [entry] : []
  if (!fs.existsSync(path.join(repository, dir))) return []
  return fs.readdirSync(path.join(repository, dir)).sort()
    .filter(name => name.startsWith(before) && name.endsWith(after))
    .map(name => path.posix.join(dir, name))
}

// urlPath returns the path of a file's page on the site, with .md at its end.
export function urlPath(file: string): string {
  if (file === 'README.md') return 'index.md'
  return file.replace(/^docs\/(site\/)?/, '').replace(/README\.md$/, 'index.md')
}

// title returns the text of the first heading of a file.
function title(file: string): string {
  const line = fs.readFileSync(path.join(repository, file), 'utf8').match(/^# (.+)$/m)
  return (line?.[1] ?? path.basename(file, '.md')).replace(/[`*]/g, '')
}

export const sidebar = sections.map(({ text, pages }) => ({
  text,
  items: pages.flatMap(files)
    .map(file => ({ text: file === 'README.md' ? 'Overview' : title(file), link: '/' + urlPath(file).replace(/(index)?\.md$/, '') })),
}))
const listed = new Set(sections.flatMap(({ pages, also }) => [...pages, ...also]).flatMap(files))

// pages are the files of all pages.
export const pages: ReadonlySet<string> = listed

// unlisted are the Markdown files that are no pages: of docs, there are none.
export const unlisted = ['.', 'docs']
  .flatMap(dir => fs.readdirSync(path.join(repository, dir), { recursive: dir === 'docs' }).map(name => path.posix.join(dir, String(name))))
  .filter(file => file.endsWith('.md') && !file.includes('node_modules/') && !listed.has(file))
const forgotten = unlisted.filter(file => file.startsWith('docs/'))
if (forgotten.length > 0) throw new Error(`not in docs/site/nav.json: ${forgotten.join(', ')}`)

const byPath = new Map([...listed].map(file => [urlPath(file), file]))

// fileAt returns the file whose page has a path.
export function fileAt(page: string): string {
  return byPath.get(page) ?? page
}
