// Changes the roles in VitePress's search box, which names a dialog a button and puts links
// inside options: axe-core calls both serious. A new version that has other text fails here.
import type { Plugin } from 'vite'

const changes = [
  [`      role="button"
      :aria-owns="results?.length ? 'localsearch-list' : undefined"
      aria-expanded="true"
      aria-haspopup="listbox"
      aria-labelledby="localsearch-label"
`, `      role="dialog"
      aria-modal="true"
      aria-label="Search"
`],
  [`            :id="'localsearch-item-' + index"
            :aria-selected="selectedIndex === index ? 'true' : 'false'"
            role="option"
`, `            role="presentation"
`],
  [`              :aria-label="[...p.titles, p.title].join(' > ')"
`, `              :id="'localsearch-item-' + index"
              :aria-selected="selectedIndex === index ? 'true' : 'false'"
              role="option"
`],
  ['<kbd :aria-label=', '<kbd role="img" :aria-label='],
]

export const searchRoles: Plugin = {
  name: 'search-roles',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/VPLocalSearchBox.vue')) return
    for (const [before, after] of changes) {
      if (!code.includes(before)) throw new Error(`VPLocalSearchBox.vue has changed: no ${before}`)
      code = code.replaceAll(before, after)
    }
    return code
  },
}
