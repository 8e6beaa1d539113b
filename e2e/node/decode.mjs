// Decodes answers with the Vercel AI SDK, as programs do. Its arguments, input
// and output are those of ../python/decode.py; the third argument is the folder
// with the packages. A call that the SDK itself calls invalid is none: it runs
// no tool for it.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [url, tools, folder] = process.argv.slice(-3);
globalThis.AI_SDK_LOG_WARNINGS = false;
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));

const { generateText, streamText, tool, jsonSchema } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

const offered = Object.fromEntries(JSON.parse(tools).map((t) => [t.name, tool({ inputSchema: jsonSchema(t.schema) })]));

const models = {
  chat: (at) => ({
    "openai-compatible": createOpenAICompatible({ name: "any", ...at })("m"),
    "openai.chat": createOpenAI(at).chat("m"),
  }),
  responses: (at) => ({ "openai.responses": createOpenAI(at).responses("m") }),
  anthropic: (at) => ({ anthropic: createAnthropic(at)("m") }),
};

const add = (calls, call) => call.invalid || calls.push([call.toolName, JSON.stringify(call.input)]);

async function decode(job, model, calls) {
  const ask = { model, tools: offered, prompt: "?", maxRetries: 0, onError() {} };
  if (!job.stream) {
    for (const call of (await generateText(ask)).toolCalls) add(calls, call);
    return;
  }
  for await (const part of streamText(ask).fullStream) {
    if (part.type === "tool-call") add(calls, part);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const result = {};
  const at = { baseURL: url + "/v1", apiKey: "none", headers: { "X-Exchange": String(job.n) } };
  for (const [way, model] of Object.entries(models[job.format](at))) {
    result[way] = [];
    await decode(job, model, result[way]).catch(() => {});
  }
  console.log(JSON.stringify({ n: job.n, calls: result }));
}
