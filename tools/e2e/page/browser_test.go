// Package page_test holds the page of the gateway, and the documentation site, to what
// they promise, in a real browser: `make page` and `make site-test`.
package page_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/report"
)

var (
	program string          // the browser's path
	browser context.Context // the process that all tests use; each test has a tab of its own
)

// TestMain starts the browser. Without one, the tests are skipped.
func TestMain(m *testing.M) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if at, err := exec.LookPath(name); err == nil {
			program = at
			break
		}
	}
	if program == "" {
		fmt.Println("skipped: there is no chromium; install Debian's package chromium")
		os.Exit(0)
	}
	stop := start()
	code := m.Run()
	stop()
	os.Exit(code)
}

// start starts a browser, and sets browser.
func start() (stop func()) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 800))
	ctx, stopProgram := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopBrowser := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		log.Fatal(err)
	}
	browser = ctx
	return func() {
		stopBrowser()
		stopProgram()
	}
}

// ownBrowser starts a browser for the rest of t, whose processes have shown no other
// page.
func ownBrowser(t *testing.T) {
	t.Helper()
	before := browser
	stop := start()
	t.Cleanup(func() {
		stop()
		browser = before
	})
}

// tab is a tab of the browser. At the end of its test it has seen no error on its
// console and no request to another host.
type tab struct {
	context.Context
	t    *testing.T
	base string // of the page's server

	mu       sync.Mutex
	problems []string
}

// open opens a tab for a server.
func open(t *testing.T, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	ctx, cancelTime := context.WithTimeout(ctx, 60*time.Second)
	b := &tab{Context: ctx, t: t, base: base}
	require.NoError(t, chromedp.Listen(ctx, b.watch))
	call(b, network.Enable, network.EnableParams{})
	call(b, browserlog.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	t.Cleanup(func() {
		cancelTime()
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.problems)
	})
	return b
}

func (b *tab) watch(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			problem = fmt.Sprintf("console: %s %s", e.Type, e.Args[0].Value)
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
	case *browserlog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			problem = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.base) && !strings.HasPrefix(url, "data:") {
			problem = "request to " + url
		}
	}
	if problem != "" {
		b.mu.Lock()
		b.problems = append(b.problems, problem)
		b.mu.Unlock()
	}
}

// call calls the browser.
func call[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.Context, c, params)
	require.NoError(b.t, err)
	return result
}

// visit goes to a path of the server.
func (b *tab) visit(path string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.Context, chromedp.Navigate(b.base+path)))
}

// value returns the value of a JavaScript expression.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return v
}

// wait waits until a JavaScript expression is true.
func (b *tab) wait(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return value[bool](b, expression) }, 10*time.Second, 20*time.Millisecond, expression)
}

// arrive waits until a JavaScript expression is true of a page that is ready.
func (b *tab) arrive(expression string) {
	b.t.Helper()
	b.wait(`document.readyState === "complete" && (` + expression + `)`)
}

// press presses a key, as a person does: what the page prevents does not happen.
func (b *tab) press(key string) {
	b.t.Helper()
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key}
	switch key {
	case "Enter":
		down.Code, down.Text, down.WindowsVirtualKeyCode = "Enter", "\r", 13
	case "Escape":
		down.Code, down.Text, down.WindowsVirtualKeyCode = "Escape", "", 27
	}
	call(b, input.DispatchKeyEvent, down)
	down.Type, down.Text = input.DispatchKeyEventTypeKeyUp, ""
	call(b, input.DispatchKeyEvent, down)
}

// write presses a key for each character.
func (b *tab) write(text string) {
	b.t.Helper()
	for _, c := range text {
		b.press(string(c))
	}
}

// text returns the visible text of the first element.
func (b *tab) text(selector string) (s string) {
	b.t.Helper()
	return value[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// scheme sets the colours that the reader prefers.
func (b *tab) scheme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// shots is the folder of the screenshots.
func shots(t *testing.T) string {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "toolmend-page")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

// shoot writes a screenshot in each scheme.
func (b *tab) shoot(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		png, err := chromedp.Run(b.Context, chromedp.CaptureScreenshot())
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join(shots(b.t), name+"-"+scheme+".png"), png, 0o644))
	}
	b.scheme("light")
}

// machine says where figures were measured.
func machine() string {
	name := goruntime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(info), "model name"); ok {
			line, _, _ := strings.Cut(after, "\n")
			name = strings.TrimLeft(line, "\t :")
		}
	}
	return fmt.Sprintf("%d × %s", goruntime.NumCPU(), name)
}

// serve serves steps, and lets the browser in.
func serve(t *testing.T, steps []report.Step) (base string, memory *page.Steps) {
	memory = page.NewSteps(256 << 20)
	for _, s := range steps {
		memory.Add(s)
	}
	token := page.NewToken()
	s := httptest.NewServer(page.New(memory, page.Options{Root: "/_toolmend", Access: page.Access{Token: token}, About: "api.example.com", Live: true}))
	t.Cleanup(s.Close)
	enter(t, s.URL, "/_toolmend/?token="+token)
	return s.URL, memory
}

// enter opens a page by its token, so that the browser has its cookie.
func enter(t *testing.T, base, path string) {
	t.Helper()
	b := open(t, base)
	b.visit(path)
	require.NotContains(t, value[string](b, "location.href"), "token", "not left in the address bar")
	require.NotContains(t, value[string](b, "document.title"), "Not opened")
}
