package simulate

import (
	"fmt"
	"sync"
	_ "unsafe" // for go:linkname

	"go.opentelemetry.io/otel/attribute"

	_ "github.com/toolmend/toolmend/internal/proxy"
	_ "github.com/toolmend/toolmend/internal/rawjson"
)

// The pools of the product. A renamed one is an error of the linker.
//
//go:linkname smallBuffers github.com/toolmend/toolmend/internal/proxy.smallBuffers
//go:linkname largeBuffers github.com/toolmend/toolmend/internal/proxy.largeBuffers
//go:linkname borrowed github.com/toolmend/toolmend/internal/rawjson.borrowed
var (
	smallBuffers, largeBuffers *sync.Pool
	borrowed                   sync.Pool
)

func attributeKey(k string) attribute.Key { return attribute.Key(k) }

// countPools empties the pools and counts what they make. The result tells which pool did not get back all
// of that, or got something twice. No collection of garbage may come in between.
func countPools() func() []string {
	all := map[string]*sync.Pool{"small buffers": smallBuffers, "large buffers": largeBuffers, "documents": &borrowed}
	made := map[string]int{}
	drain := func(p *sync.Pool) (n int, twice bool) {
		old := p.New
		defer func() { p.New = old }()
		p.New = nil
		seen := map[any]bool{}
		for v := p.Get(); v != nil; v = p.Get() {
			twice = twice || seen[v]
			seen[v] = true
			n++
		}
		return n, twice
	}
	restore := map[string]func() any{}
	for name, p := range all {
		drain(p)
		old := p.New
		restore[name] = old
		p.New = func() any { made[name]++; return old() }
	}
	return func() (faults []string) {
		for name, p := range all {
			p.New = restore[name]
			n, twice := drain(p)
			if twice {
				faults = append(faults, fmt.Sprintf("the pool of %s got one of them twice", name))
			} else if n < made[name] && name != "documents" { // large documents do not come back
				faults = append(faults, fmt.Sprintf("the pool of %s made %d, and has %d again", name, made[name], n))
			}
		}
		return faults
	}
}
