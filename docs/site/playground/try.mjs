// Answers the requests in standard input, one a line, with the playground's validator:
// node try.mjs DIR. DIR has what `make site` builds for the playground.
import fs from 'node:fs'
import path from 'node:path'
import readline from 'node:readline'
import vm from 'node:vm'
import zlib from 'node:zlib'

const dir = process.argv[2]
vm.runInThisContext(fs.readFileSync(path.join(dir, 'wasm_exec.js'), 'utf8'))
const go = new globalThis.Go()
const { instance } = await WebAssembly.instantiate(zlib.gunzipSync(fs.readFileSync(path.join(dir, 'toolmend.wasm.gz'))), go.importObject)
go.run(instance)
for await (const line of readline.createInterface({ input: process.stdin })) process.stdout.write(globalThis.toolmendTry(line))
process.exit(0)
