// An agent of the Vercel AI SDK with one tool. Arguments: the base URL, the
// prompt, and the folder with the packages.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, prompt, folder] = process.argv.slice(-3);
globalThis.AI_SDK_LOG_WARNINGS = false;
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));

const { streamText, tool, jsonSchema, stepCountIs } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const model = createOpenAICompatible({ name: "any", baseURL: url + "/v1", apiKey: "none" })("m");
const read_file = tool({
  description: "Read a file.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { path: { type: "string" } },
    required: ["path"],
    additionalProperties: false,
  }),
  execute: ({ path }) => readFile(path, "utf8"),
});

const answer = streamText({
  model, prompt, tools: { read_file }, stopWhen: stepCountIs(20),
  onError({ error }) {
    console.log("error", error?.data?.error?.message ?? String(error));
    process.exitCode = 1;
  },
});
for await (const part of answer.textStream) process.stdout.write(part);
console.log();
