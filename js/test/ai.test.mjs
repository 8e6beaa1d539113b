import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, jsonSchema, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { toolmend } from "../ai.mjs";
import { Stack, StepError } from "../index.mjs";

const root = process.env.TOOLMEND_ROOT ?? new URL("../..", import.meta.url).pathname; // make inproc runs a copy

const usage = { inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined }, outputTokens: { total: 5, text: 5, reasoning: undefined } };
const call = (input, i = 0, more = {}) => ({ type: "tool-call", toolCallId: `c${i}`, toolName: "book", input, ...more });
const text = (t) => ({ type: "text", text: t });
const finish = (content) => ({ unified: content.some((c) => c.type === "tool-call") ? "tool-calls" : "stop", raw: undefined });

function model(...turns) {
  return new MockLanguageModelV3({
    doGenerate: async () => {
      const content = turns.shift();
      return { content, finishReason: finish(content), usage, warnings: [] };
    },
    doStream: async () => {
      const content = turns.shift();
      const chunks = [{ type: "stream-start", warnings: [] }];
      content.forEach((c, i) => {
        if (c.type === "tool-call") {
          chunks.push({ type: "tool-input-start", id: c.toolCallId, toolName: c.toolName }, { type: "tool-input-delta", id: c.toolCallId, delta: c.input }, { type: "tool-input-end", id: c.toolCallId }, c);
        } else {
          chunks.push({ type: "text-start", id: `${i}` }, ...c.text.split(" ").map((w) => ({ type: "text-delta", id: `${i}`, delta: w + " " })), { type: "text-end", id: `${i}` });
        }
      });
      chunks.push({ type: "finish", finishReason: finish(content), usage });
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

function setup(turns, options) {
  const inner = model(...turns);
  const booked = [];
  const book = tool({ description: "Books a hotel.", inputSchema: z.object({ city: z.string(), nights: z.number().int().default(1) }), execute: async (a) => (booked.push(a), `booked ${a.city}`) });
  return { inner, booked, o: { model: wrapLanguageModel({ model: inner, middleware: toolmend(options) }), tools: { book }, prompt: "a hotel", system: "Be brief.", stopWhen: stepCountIs(5), maxRetries: 0 } };
}

test("repaired", async () => {
  const { inner, booked, o } = setup([[call('{"city": "Oslo", "nights": "3"')], [text("Done.")]]);
  assert.equal((await generateText(o)).text, "Done.");
  assert.deepEqual(booked, [{ city: "Oslo", nights: 3 }]);
  assert.equal(inner.doGenerateCalls.length, 2);
});

test("asked again, siblings not executed, signatures kept, usage summed", async () => {
  const thought = { type: "reasoning", text: "hm", providerMetadata: { anthropic: { signature: "s" } } };
  const { inner, booked, o } = setup([[thought, call('{"nights": 2}'), call('{"city": "Rome", "nights": 1}', 1)], [call('{"city": "Oslo", "nights": 2}'), call('{"city": "Rome", "nights": 1}', 1)], [text("Done.")]]);
  const result = await generateText(o);
  assert.deepEqual(booked.map((b) => b.city).sort(), ["Oslo", "Rome"]);
  const again = inner.doGenerateCalls[1].prompt;
  assert.deepEqual(again.map((m) => m.role), ["system", "user", "assistant", "tool"]);
  assert.deepEqual(again[2].content[0].providerOptions, { anthropic: { signature: "s" } });
  assert.equal(again[3].content[0].output.type, "error-text");
  assert.match(again[3].content[0].output.value, /required property is missing/);
  assert.match(again[3].content[1].output.value, /not executed/);
  assert.equal(result.steps[0].usage.inputTokens, 20);
});

test("a message with several results stays one", async () => {
  const inner = model([call("{}")], [call('{"city": "Oslo"}')]);
  const image = { type: "content", value: [{ type: "file-data", data: "aGk=", mediaType: "image/png" }] };
  const result = (i, output) => ({ type: "tool-result", toolCallId: `c${i}`, toolName: "book", output });
  const prompt = [
    { role: "user", content: [text("two hotels")] },
    { role: "assistant", content: [{ ...call({ city: "Rome" }, 1) }, { ...call({ city: "Bergen" }, 2) }] },
    { role: "tool", content: [result(1, image), result(2, { type: "text", value: "booked" })], providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } },
  ];
  const tools = [{ type: "function", name: "book", inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];
  await wrapLanguageModel({ model: inner, middleware: toolmend() }).doGenerate({ prompt, tools });
  assert.deepEqual(inner.doGenerateCalls.map((c) => c.prompt.slice(0, 3)), [prompt, prompt]);
  assert.equal(inner.doGenerateCalls[1].prompt.length, 5);
});

test("an image stays where the calls are text", async () => {
  const { inner, o } = setup([[text("A cat.")]], { text_call: true });
  const content = [{ type: "text", text: "what is this?" }, { type: "image", image: new Uint8Array([1]), mediaType: "image/png" }];
  await generateText({ ...o, prompt: undefined, messages: [{ role: "user", content }] });
  const { role, content: [said, file] } = inner.doGenerateCalls[0].prompt.at(-1);
  assert.deepEqual([role, said.text, file.type, file.mediaType], ["user", "what is this?", "file", "image/png"]);
});

test("a rule", async () => {
  const rules = { book: (c) => (c.args.city === "Atlantis" ? { pointer: "/city", message: "there is no hotel in Atlantis" } : undefined) };
  const { inner, booked, o } = setup([[call('{"city": "Atlantis", "nights": 1}')], [call('{"city": "Oslo", "nights": 1}')], [text("Done.")]], { rules });
  await generateText(o);
  assert.deepEqual(booked, [{ city: "Oslo", nights: 1 }]);
  assert.match(inner.doGenerateCalls[1].prompt.at(-1).content[0].output.value, /no hotel in Atlantis/);
});

test("exhausted", async () => {
  const { booked, o } = setup([[call('{"x": 1}')], [call('{"x": 2}')]], { attempts: 2 });
  await assert.rejects(generateText(o), (e) => e.code === "invalid_tool_call" && e.lastMessage[0].input === '{"x": 2}');
  assert.deepEqual(booked, []);
});

test("a JSON Schema tool, which the SDK does not validate", async () => {
  const inner = model([call('{"city": 5}')], [call('{"city": "Oslo"}')], [text("Done.")]);
  const got = [];
  const book = tool({ inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string", minLength: 3 } }, required: ["city"] }), execute: async (a) => (got.push(a), "ok") });
  await generateText({ model: wrapLanguageModel({ model: inner, middleware: toolmend() }), tools: { book }, prompt: "x", stopWhen: stepCountIs(5) });
  assert.deepEqual(got, [{ city: "Oslo" }]);
});

test("a stream", async () => {
  const { booked, o } = setup([[text("Let me see"), call('{"nights": 2}')], [text("Now then"), call('{"city": "Oslo", "nights": "2"}')], [text("All done")]]);
  const result = streamText(o);
  const parts = [];
  for await (const p of result.fullStream) parts.push(p);
  assert.deepEqual(booked, [{ city: "Oslo", nights: 2 }]);
  assert.deepEqual(parts.filter((p) => p.type === "text-delta").map((p) => p.text.trim()), ["Let", "me", "see", "Now", "then", "All", "done"]);
  assert.equal(parts.filter((p) => p.type === "tool-call").length, 1);
  assert.equal(parts.filter((p) => p.type === "error").length, 0);
});

test("a stream that the consumer cancels", async () => {
  const { inner, o } = setup([[text("one ".repeat(200)), call('{"city": "Oslo", "nights": 2}')]]);
  const { doStream } = inner;
  let cancelled;
  inner.doStream = async (p) => {
    const { stream } = await doStream.call(inner, p);
    const reader = stream.getReader();
    const pull = async (c) => {
      await new Promise((r) => setTimeout(r, 1));
      const { done, value } = await reader.read();
      if (done) c.close();
      else c.enqueue(value);
    };
    return { stream: new ReadableStream({ pull, cancel: () => void (cancelled = p.abortSignal.aborted) }) };
  };
  const failed = [];
  const fail = (e) => failed.push(e);
  process.on("uncaughtException", fail).on("unhandledRejection", fail);
  const { stream } = await o.model.doStream({ prompt: [{ role: "user", content: [text("x")] }] });
  const reader = stream.getReader();
  while ((await reader.read()).value.type !== "text-delta");
  await reader.cancel();
  await new Promise((r) => setTimeout(r, 100));
  process.off("uncaughtException", fail).off("unhandledRejection", fail);
  assert.deepEqual([failed, cancelled], [[], true]);
});

test("a stream that is exhausted", async () => {
  const { o } = setup([[call('{"x": 1}')], [call('{"x": 2}')]], { attempts: 2 });
  const errors = [];
  const result = streamText({ ...o, onError: ({ error }) => errors.push(error.code) });
  for await (const _ of result.fullStream);
  assert.deepEqual(errors, ["invalid_tool_call"]);
});

test("the model's own error comes back", async () => {
  const own = new Error("down");
  const inner = new MockLanguageModelV3({ doGenerate: async () => { throw own; } });
  await assert.rejects(generateText({ model: wrapLanguageModel({ model: inner, middleware: toolmend() }), prompt: "x", maxRetries: 0 }), (e) => e === own);
});

test("another model for the last attempt", async () => {
  for (const how of [generateText, streamText]) {
    const [small, large] = [model([call('{"x": 1}')], [text("Done.")]), model([call('{"city": "Oslo"}')])];
    const booked = [];
    const book = tool({ inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }), execute: async (a) => booked.push(a) });
    const o = { model: wrapLanguageModel({ model: small, middleware: toolmend({ attempts: 2, escalate: "large" }, { large }) }), tools: { book }, prompt: "x", stopWhen: stepCountIs(5) };
    assert.equal((await (await how(o)).text).trim(), "Done.");
    assert.deepEqual(booked, [{ city: "Oslo" }]);
  }
});

test("between other middlewares", async () => {
  const seen = [];
  const counts = { specificationVersion: "v3", wrapGenerate: async ({ doGenerate, params }) => (seen.push(params.prompt.length), doGenerate()) };
  for (const [order, want] of [[[counts, toolmend()], [1, 3]], [[toolmend(), counts], [1, 3, 3]]]) {
    seen.length = 0;
    const inner = model([call('{"x": 1}')], [call('{"city": "Oslo"}')], [text("Done.")]);
    const book = tool({ inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }), execute: async () => "ok" });
    await generateText({ model: wrapLanguageModel({ model: inner, middleware: order }), tools: { book }, prompt: "x", stopWhen: stepCountIs(5) });
    assert.deepEqual(seen, want);
  }
});

const earlier = (toolName) => [
  { role: "assistant", content: [{ type: "tool-call", toolCallId: "e", toolName, input: {} }] },
  { role: "tool", content: [{ type: "tool-result", toolCallId: "e", toolName, output: { type: "text", value: "done" } }] },
];

test("the cases of the library", async (t) => {
  for (const c of JSON.parse(readFileSync(`${root}/cmd/toolmend/internal/lib/testdata/cases.json`))) {
    if (!c.answers || c.allowed_tools || c.no_parallel_calls) continue; // the SDK has no word for these
    await t.test(c.name, async () => {
      const check = c.rule && ((value) => (c.rule.bad.some((bad) => isDeepStrictEqual(bad, value)) ? c.rule.message : undefined));
      const rules = c.rule ? { [c.rule.tool]: c.rule.path ? { [c.rule.path]: check } : (k) => check(k.args) } : {};
      let asked = 0;
      const inner = new MockLanguageModelV3({
        doGenerate: async () => {
          const a = c.answers[asked++];
          const calls = (a.calls ?? []).map(([toolName, input], i) => ({ type: "tool-call", toolCallId: `c${asked}${i}`, toolName, input }));
          return { content: [...(a.reasoning ? [{ type: "reasoning", text: a.reasoning }] : []), ...(a.text ? [text(a.text)] : []), ...calls], finishReason: { unified: "other", raw: a.finish ?? "" }, usage, warnings: [] };
        },
      });
      const middleware = toolmend(new Stack({ rules, ...c.options }));
      const choice = c.tool_choice?.name ? { type: "tool", toolName: c.tool_choice.name } : c.tool_choice && { type: c.tool_choice.mode };
      const params = {
        prompt: [{ role: "user", content: [text(c.user)] }, ...(c.behind_results ? earlier(c.tools[0].name) : [])], maxOutputTokens: c.max_tokens, toolChoice: choice,
        tools: c.tools.map((d) => ({ type: "function", name: d.name, inputSchema: d.parameters })),
      };
      const got = {};
      let content;
      try {
        ({ content } = await middleware.wrapGenerate({ params, model: inner }));
      } catch (e) {
        if (!(e instanceof StepError)) throw e;
        [content, got.code] = [e.lastMessage ?? [], e.code];
      }
      got.calls = content.filter((p) => p.type === "tool-call").map((p) => [p.toolName, p.input]);
      got.text = content.filter((p) => p.type === "text").map((p) => p.text).join("");
      const { code, calls = [], text: said = "" } = c.want;
      assert.deepEqual({ ...got, asked }, { ...(code && { code }), calls, text: said, asked: 1 + (c.want.replies?.length ?? 0) });
    });
  }
});

test("the program of docs/typescript.md", async () => {
  const [, program] = readFileSync(`${root}/docs/typescript.md`, "utf8").match(/<!-- file: sdk.mjs -->\n```ts\n([^]*?)```/);
  const file = new URL("./sdk.mjs", import.meta.url);
  writeFileSync(file, program.replace('"toolmend/ai"', '"../ai.mjs"'));
  const { withToolmend } = await import(file);
  rmSync(file);
  const inner = model([call('{"city": "Atlantis", "nights": 1}')], [call('{"city": "Oslo", "nights": "1"}')], [text("Done.")]);
  const booked = [];
  const book = tool({ inputSchema: z.object({ city: z.string(), nights: z.number() }), execute: async (a) => (booked.push(a), "ok") });
  const rules = { book: (c) => (c.args.city === "Atlantis" ? "no hotel there" : undefined) };
  await generateText({ model: withToolmend(inner, rules), tools: { book }, prompt: "x", stopWhen: stepCountIs(5) });
  assert.deepEqual(booked, [{ city: "Oslo", nights: 1 }]);
});
