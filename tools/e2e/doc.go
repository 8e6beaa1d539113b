// Package e2e runs real clients, which are installed from their package
// registries, against a scripted upstream: each client in each scenario,
// directly and through Toolmend. `make agents` runs it and writes the table of
// docs/measured/clients.md.
//
// There are three tables: clients (agents.go, sdks.go), scenarios (scenario.go) and fronts
// (front.go). A new client, scenario or front is one more entry. The upstream speaks five
// formats, streamed and whole, and refuses histories as the real providers do (package
// internal/test/strict).
//
// A client runs in an empty home directory, with no environment but what its
// entry sets, with a proxy that leads nowhere for all but loopback, and with a
// time limit. At the end its process group is killed. That takes Unix.
//
// Other tests do something else: programs_test.go starts programs of the official SDKs
// with `toolmend run --`, and lets them exceed a limit of their client. healing_test.go
// lets applications of the official SDKs send what providers refuse, once for each rule of
// package heal (`make agents` without CLIENTS). llama_test.go tries a running server of
// llama.cpp as an upstream. mcp_test.go runs MCP servers, and MCP's conformance suite,
// with and without the proxy (`make mcp`). Folder page opens the page of the gateway and
// the HTML report in a real browser (`make page`), and folder metrics reads the metrics
// with a real Prometheus (`make metrics`).
package e2e
