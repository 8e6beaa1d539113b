// What a step through the child process costs in Node, as ratios in one run. make inproc-bench runs it.
// Each row is measured in turns with its base. A figure is the lower quartile, because other programs make some slow.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { Ajv } from "ajv";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { toolmend } from "../ai.mjs";
import { Stack } from "../index.mjs";

const SECONDS = Number(process.env.FIGURES_SECONDS ?? "0.4"); // for each of the two
const schema = {
  type: "object",
  properties: { city: { type: "string" }, street: { type: "string" }, nights: { type: "integer" }, note: { type: "string" } },
  required: ["city", "street", "nights"],
  additionalProperties: false,
};
const book = { name: "book", description: "Books a hotel.", parameters: schema };
const tools = [book, ...Array.from({ length: 19 }, (_, i) => ({ ...book, name: `other${i}` }))].map((f) => ({ type: "function", function: f }));
const user = [{ role: "user", content: "A hotel in Oslo, please." }];
const small = JSON.stringify({ city: "Oslo", street: "Karl Johans gate 1", nights: 2, note: "x".repeat(21) });
const large = JSON.stringify({ city: "Oslo", street: "Karl Johans gate 1", nights: 2, note: "x".repeat(631) });
const repaired = small.replace(':2,', ':"2",');
const broken = small.replace('"nights":2,', "");

const quartile = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 4)];

// A provider on loopback, in a process of its own: it reads the request and sends a fixed answer.
const provider = spawn(process.execPath, ["--input-type=module", "-e", `
import { createServer } from "node:http";
const message = { role: "assistant", content: "Done." };
const answer = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
const server = createServer((request, response) => request.resume().on("end", () => response.setHeader("content-type", "application/json").end(answer)));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`], { stdio: ["ignore", "pipe", "inherit"] });
const port = Number(await once(provider.stdout.setEncoding("utf8"), "data"));

// The microseconds of processor that this program and its children have used, without the provider.
function cpu() {
  const { user, system } = process.cpuUsage();
  let total = user + system;
  if (process.platform !== "linux") return total;
  for (const child of readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").split(" ").filter((pid) => pid && Number(pid) !== provider.pid)) {
    for (const thread of readdirSync(`/proc/${child}/task`)) total += Number(readFileSync(`/proc/${child}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000;
  }
  return total;
}

async function row(name, one, base, n = Infinity) {
  const [times, used] = [[[], []], [0, 0]];
  const begin = performance.now();
  await one(), await base();
  const block = performance.now() - begin > 30 ? 1 : 20; // reading the processor time takes as long as a step
  for (let k = 0; k < 20 * (block - 1); k++) await one(), await base(); // until they are compiled
  const end = performance.now() + 2000 * SECONDS;
  for (let round = 0; (performance.now() < end || times[1].length < 7) && times[1].length < n; round++) {
    for (const [i, f] of [one, base].entries()) {
      const before = cpu();
      for (let k = 0; k < block; k++) {
        const start = performance.now();
        await f();
        times[i].push(performance.now() - start);
      }
      if (round > 0) used[i] += cpu() - before;
    }
  }
  const [a, b] = times.map((t) => quartile(t.slice(2)) * 1000);
  const figure = (us) => (us < 10 ? us.toFixed(1) : Math.round(us).toLocaleString("en"));
  console.log(`| ${name} | ${figure(a)} | ${figure(b)} | ${(a / b).toFixed(2)} | ${(used[0] / used[1]).toFixed(2)} |`);
}

const table = (what, base) => console.log(`\n| ${what} | µs | ${base}, µs | ratio | of processor time |\n|---|---|---|---|---|`);

const scripted = (...turns) => {
  let n = 0;
  return async () => ({ role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "book", arguments: turns[n++ % turns.length] } }] });
};

const said = (i) => `${i} ${"The quick brown fox jumps over the lazy dog. ".repeat(220)}`;

console.log(`Node ${process.version}, ai ${JSON.parse(readFileSync("node_modules/ai/package.json")).version}, ajv ${JSON.parse(readFileSync("node_modules/ajv/package.json")).version}`);
const stack = new Stack();
const accepts = new Ajv().compile(schema);
table("verdict on a call of 90 bytes", "base");
await row("`Stack.validate`; base: ajv with JSON.parse", () => stack.validate(book, small), () => accepts(JSON.parse(small)));

table("a step, 20 tools", "base");
for (const [name, turns] of [["valid, 90 bytes", [small]], ["valid, 700 bytes", [large]], ["repaired", [repaired]], ["re-asked once", [broken, small]]]) {
  const call = stack.wrap(scripted(...turns));
  await row(`${name}; base: ajv with JSON.parse`, () => call(user, tools), () => accepts(JSON.parse(turns[0])));
}

table("one step", "without Toolmend");
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV3({ doGenerate: async () => ({ content: [{ type: "text", text: "Done." }], finishReason: { unified: "stop" }, usage, warnings: [] }) });
const real = createOpenAICompatible({ name: "loopback", baseURL: `http://127.0.0.1:${port}/v1` })("m");
const [wrapped, wrappedReal] = [model, real].map((m) => wrapLanguageModel({ model: m, middleware: toolmend() }));
const own = { book: tool({ inputSchema: jsonSchema(schema), execute: async () => "booked" }) };
const client = async (messages, tools) => (JSON.stringify({ messages, tools }), { role: "assistant", content: "Done." });
const call = stack.wrap(client);
for (const [size, name] of [[1, "one message"], [101, "1 MB in 101 messages"]]) {
  const messages = Array.from({ length: size }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: said(i) }));
  const of = (m) => () => (model.doGenerateCalls.length = 0, generateText({ model: m, tools: own, messages }));
  await row(`AI SDK, generateText, scripted model, ${name}`, of(wrapped), of(model));
  await row(`AI SDK, generateText, OpenAI-compatible provider on loopback, ${name}`, of(wrappedReal), of(real));
  await row(`own client that writes its request as JSON, ${name}`, () => call(messages, tools), () => client(messages, tools));
}

table("100 tasks at once, the model takes 50 ms", "without Toolmend");
const slow = async () => (await new Promise((r) => setTimeout(r, 50)), scripted(small)());
const atOnce = (f) => () => Promise.all(Array.from({ length: 100 }, () => f(user, tools)));
await row("all valid", atOnce(stack.wrap(slow)), atOnce(slow), 20);

table("start", "base");
const index = new URL("../index.mjs", import.meta.url).href;
const program = (text) => () => spawnSync(process.execPath, ["--input-type=module", "-e", text]);
await row("first verdict of a program; base: the same program without it", program(`import { validate } from "${index}"; await validate({ name: "a" }, {});`), program(`import "${index}";`), 10);
console.log(`\nMemory after all of this: this program ${Math.round(process.memoryUsage().rss / 2 ** 20)} MB.`);
provider.kill();
