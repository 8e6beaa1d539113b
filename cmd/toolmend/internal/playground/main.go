//go:build js && wasm

// Command playground is the validator as a function of a web page: `make site` compiles
// it to WebAssembly. The function is toolmendTry. It takes and returns JSON as try.JSON does.
package main

import (
	"context"
	"syscall/js"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/try"
)

func main() {
	js.Global().Set("toolmendTry", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return try.JSON(context.Background(), args[0].String())
	}))
	select {}
}
