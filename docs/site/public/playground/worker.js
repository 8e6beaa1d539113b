// Runs the validator, which Go compiled to WebAssembly, beside the page, so that a call that
// takes long does not block it. A message to it is a request of toolmendTry, and a message
// from it an answer.
importScripts('wasm_exec.js')

const ready = (async () => {
  const response = await fetch('toolmend.wasm.gz')
  if (!response.ok) throw new Error(`toolmend.wasm.gz: ${response.status}`)
  let bytes = await response.arrayBuffer()
  if (new Uint8Array(bytes)[0] === 0x1f) { // not unpacked by the browser already
    bytes = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer()
  }
  const go = new Go()
  const { instance } = await WebAssembly.instantiate(bytes, go.importObject)
  go.run(instance)
})()

onmessage = async ({ data }) => {
  try {
    await ready
    postMessage(toolmendTry(data))
  } catch (error) {
    postMessage(JSON.stringify({ error: String(error) }))
  }
}
