import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Invalid, Stack, StepError, ToolmendError, validate } from "../index.mjs";

const tool = { name: "get", parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false } };
const tools = [tool];
const user = [{ role: "user", content: "hi" }];
const turn = (n, ...args) => ({
  role: "assistant", content: null, signature: `s${n}`,
  tool_calls: args.map((a, i) => ({ id: `c${n}${i}`, type: "function", index: i, function: { name: "get", arguments: a } })),
});
const scripted = (...turns) => {
  const asks = [];
  const call = async (messages) => {
    asks.push(messages);
    const next = turns.shift();
    if (next instanceof Error) throw next;
    return turn(asks.length, ...next);
  };
  return Object.assign(call, { asks });
};
const args = (m) => m.tool_calls.map((c) => JSON.parse(c.function.arguments));

test("valid, repaired, re-asked", async () => {
  const lines = [], reports = [];
  const stack = new Stack({ log: (l) => lines.push(l), onReport: (r) => reports.push(r.status) });
  assert.deepEqual(await stack.wrap(scripted(['{"n":5}']))(user, tools), turn(1, '{"n":5}'));
  const repaired = await stack.wrap(scripted(['{"n":"5"}']))(user, tools);
  assert.deepEqual(args(repaired), [{ n: 5 }]);
  assert.deepEqual([repaired.signature, repaired.tool_calls[0].index, repaired.report.attempts.length], ["s1", 0, 1]);
  assert.deepEqual([lines, reports], [["attempt 1: get was repaired: n: mend.coerce"], ["valid", "valid"]]);
  const model = scripted(['{"m":1}', '{"n":7}'], ['{"n":5}', '{"n":7}']);
  assert.deepEqual(args(await stack.wrap(model)(user, tools)), [{ n: 5 }, { n: 7 }]);
  const [first, failed, one, two] = model.asks[1];
  assert.deepEqual([first, failed.signature, one.tool_call_id], [user[0], "s1", "c10"]);
  assert.match(one.content, /required property is missing/);
  assert.match(two.content, /not executed/);
});

test("errors", async () => {
  const stack = new Stack({ attempts: 2 });
  await assert.rejects(stack.wrap(scripted(['{"x":1}'], ['{"x":2}']))(user, tools), (e) =>
    e instanceof StepError && e.name === "InvalidToolCall" && e.replies.length === 1 && e.verdicts[0].issues.length === 2 && e.lastMessage.tool_calls[0].function.arguments === '{"x":2}');
  const own = new Error("mine");
  await assert.rejects(stack.wrap(scripted(own))(user, tools), (e) => e === own);
  for (let i = 0; i < 2; i++) {
    await assert.rejects(new Stack({ atempts: 1 }).validate(tool, {}), (e) => e instanceof ToolmendError && /unknown key atempts/.test(e.message));
  }
  await assert.rejects(stack.wrap(async () => ({ ...turn(1), usage: { prompt_tokens: "many" }, choices: [{ message: turn(1) }] }))(user, tools), /cannot unmarshal/);
  await assert.rejects(new Stack({ binary: "no/where" }).validate(tool, {}), /does not start/);
});

test("what has no text, and what is no JSON", { timeout: 20_000 }, async () => {
  await assert.rejects(new Stack().wrap(async () => { throw Object.create(null); })(user, tools), TypeError);
  const rules = { get: () => { throw new Invalid("no", 5n); } };
  assert.deepEqual((await new Stack({ rules }).validate(tool, { n: 1 })).issues.map((i) => i.pointer), ["5"]);
  const model = async () => { throw new Invalid("of a rule"); };
  await assert.rejects(new Stack().wrap(model)(user, tools), Invalid, "the model's own exception");
});

test("rules", async () => {
  const check = async (rules, pattern) => {
    const model = scripted(['{"n":500}'], ['{"n":5}']);
    assert.deepEqual(args(await new Stack({ rules }).wrap(model)(user, tools)), [{ n: 5 }]);
    assert.match(model.asks[1].at(-1).content, pattern);
  };
  await check({ get: async (c) => (c.args.n > 99 ? "n must be below 100" : undefined) }, /n must be below 100/);
  await check({ "*": (c) => { if (c.args.n > 99) throw new Invalid("too large", "/n"); } }, /\[n\] too large/);
  await check({ get: { n: (n, call) => (n > 99 && call.name === "get" ? [{ message: "odd" }] : []) } }, /\[n\] odd/);
  const own = new TypeError("no database");
  await assert.rejects(new Stack({ rules: { get: () => { throw own; } } }).wrap(scripted(['{"n":1}']))(user, tools), (e) => e.code === "rule_failed" && e.cause === own);
  let stopped = false;
  const slow = (c) => new Promise(() => c.signal.addEventListener("abort", () => (stopped = true)));
  await assert.rejects(new Stack({ rules: { get: slow }, rule_timeout: 0.05 }).wrap(scripted(['{"n":1}']))(user, tools), (e) => e.code === "rule_failed");
  assert.ok(stopped);
});

test("validate", async () => {
  assert.deepEqual((await validate({ type: "function", function: tool }, '{"n":"5"}')).args, { n: 5 });
  const v = await new Stack({ rules: { get: { n: (n) => (n > 99 ? "at most 99" : null) } } }).validate(tool, { n: 500 });
  assert.deepEqual([v.ok, v.issues[0].pointer], [false, "/n"]);
  assert.match(v.reply, /at most 99/);
  assert.equal((await validate(tool, "[")).ok, false);
  await assert.rejects(validate(tool, "é".repeat(33 << 20)), /larger than the limit/); // of bytes
});

test("500 at once, and a slow one", async () => {
  const stack = new Stack();
  let release;
  const slow = stack.wrap(() => new Promise((r) => (release = () => r(turn(1, '{"n":1}')))))(user, tools);
  const got = await Promise.all(Array.from({ length: 500 }, (_, i) => stack.wrap(scripted(['{"x":1}'], [`{"n":"${i}"}`]))(user, tools)));
  assert.deepEqual(got.map((m) => args(m)[0].n), Array.from({ length: 500 }, (_, i) => i));
  release();
  assert.deepEqual(args(await slow), [{ n: 1 }]);
});

test("abort", async () => {
  const abort = new AbortController();
  let ended = false;
  const call = (messages, tools, { signal }) => new Promise(() => {
    signal.addEventListener("abort", () => (ended = true));
    abort.abort();
  });
  await assert.rejects(new Stack().wrap(call)(user, tools, { signal: abort.signal }), { name: "AbortError" });
  assert.ok(ended);
});

test("settings of Chat Completions", async () => {
  const seen = [];
  const call = async (messages, tools, settings) => {
    seen.push([settings.stop, settings.max_completion_tokens, settings.max_tokens]);
    return { choices: [{ message: turn(1, '{"n":1}'), finish_reason: seen.length > 1 ? "stop" : "length" }] };
  };
  await new Stack().wrap(call)(user, tools, { stop: "END", max_completion_tokens: 100 });
  assert.deepEqual(seen, [["END", 100, undefined], ["END", 200, undefined]]);
  for (const tool_choice of ["auto", { type: "auto" }, { type: "required" }, { type: "function", function: { name: "get" } }]) {
    assert.deepEqual(args(await new Stack().wrap(call)(user, tools, { tool_choice })), [{ n: 1 }]);
  }
});

test("a custom tool", async () => {
  const ran = { role: "assistant", content: null, tool_calls: [{ id: "r", type: "custom", custom: { name: "run", input: "ls {" } }] };
  const history = [...user, ran, { role: "tool", tool_call_id: "r", content: "a" }];
  const tool_choice = { type: "custom", custom: { name: "run" } };
  const asks = [];
  const call = async (messages, tools, settings) => {
    asks.push([messages.slice(0, 3), tools.length, settings.tool_choice]);
    return asks.length === 1 ? turn(1, '{"n":1}') : { ...ran, signature: "s2" };
  };
  const message = await new Stack().wrap(call)(history, [tool, { type: "custom", custom: { name: "run" } }], { tool_choice });
  assert.deepEqual([message.signature, message.tool_calls.map((c) => c.custom.input)], ["s2", ["ls {"]]);
  assert.deepEqual(asks, Array(2).fill([history, 2, tool_choice]));
});

test("a stream", async () => {
  const seen = [];
  const ask = async (a) => {
    for (const t of ["Let ", "me ", "see."]) a.emit("text", t);
    return { message: { role: "assistant", tool_calls: [{ id: `c${a.n}`, name: "get", arguments: a.n > 1 ? '{"n":"5"}' : '{"x":5}' }] } };
  };
  await new Stack().step({ messages: [{ role: "user", parts: [{ text: "hi" }] }], tools, ask, onEvent: (e) => seen.push(e.kind) });
  assert.deepEqual(seen, ["text", "text", "text", "reset", "text", "text", "text", "tool_call"]);
});

test("a consumer of events that throws", async () => {
  const own = new Error("closed");
  const ask = (a) => new Promise(() => (a.emit("text", "a"), a.emit("text", "b")));
  const onEvent = () => { throw own; };
  await assert.rejects(new Stack().step({ messages: [], tools, ask, onEvent }), (e) => e === own);
});

test("the caller's asynchronous context", async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const stack = new Stack({ rules: { get: () => void seen.push(storage.getStore()) } });
  const one = (name) => storage.run(name, () => stack.wrap(() => (seen.push(storage.getStore()), turn(1, '{"n":1}')))(user, tools));
  await Promise.all([one("a"), one("b")]);
  assert.deepEqual(seen.sort(), ["a", "a", "b", "b"]);
});

test("long histories, many tool sets and many stacks", async () => {
  const stack = new Stack();
  const history = Array.from({ length: 20 }, (_, i) => ({ role: "user", content: `${i} ${"x".repeat(10_000)}` }));
  for (let i = 0; i < 3; i++) history.push(await stack.wrap(scripted(['{"n":"1"}']))(history, tools));
  history[0].content = `changed ${"x".repeat(10_000)}`; // in place
  const model = scripted(['{"x":1}'], ['{"n":1}']);
  await stack.wrap(model)(history, tools);
  assert.deepEqual(model.asks[1][0], history[0]);
  for (const i of [...Array(300).keys(), 0]) {
    const odd = { name: "get", parameters: { properties: { [`p${i}`]: { type: "integer" } } } };
    assert.deepEqual((await stack.validate(odd, { [`p${i}`]: "1" })).args, { [`p${i}`]: 1 });
  }
  for (let i = 0; i < 300; i++) await new Stack().validate(tool, { n: 1 });
  assert.equal((await stack.validate(tool, { n: 1 })).ok, true); // the child has dropped it
});

const folder = mkdtempSync(join(tmpdir(), "toolmend-"));
after(() => rmSync(folder, { recursive: true }));
const run = (script) => { // in Node, Bun or Deno
  const file = join(folder, "program.mjs");
  writeFileSync(file, script);
  return spawnSync(process.execPath, [...(globalThis.Deno ? ["run", "--quiet", "--allow-all"] : []), file], { encoding: "utf8", timeout: 30_000 });
};
const index = new URL("../index.mjs", import.meta.url).href;

test("a crash, and the end of the program", { skip: process.platform === "win32" }, async () => {
  const out = run(`
    import { spawnSync } from "node:child_process";
    import { Stack, validate } from ${JSON.stringify(index)};
    const kill = () => spawnSync("pkill", ["-KILL", "-P", String(process.pid), "toolmend"]);
    const tool = { name: "get", parameters: {} };
    await validate(tool, {});
    await new Stack().wrap(async () => { kill(); await new Promise((r) => setTimeout(r, 200)); return { role: "assistant", content: "x" }; })([{ role: "user", content: "x" }]).catch((e) => console.log(e.name, e.message));
    console.log((await validate(tool, {})).ok);`);
  assert.match(out.stdout, /^Ended toolmend: the child process ended with SIGKILL\ntrue\n$/, out.stderr);
  assert.equal(out.status, 0); // an idle child keeps no program alive
});

test("a child that ends within a frame", { skip: process.platform === "win32" }, async () => {
  for (const [line, why] of [['{"type":"resu', /code 3/], ['{"type":"resu\\n', /not a frame/]]) {
    const binary = join(folder, `fake${line.length}`);
    writeFileSync(binary, `#!/bin/sh\nread a\nread b\nprintf '${line}'\nexit 3`, { mode: 0o700 });
    await assert.rejects(new Stack({ binary }).validate(tool, {}), (e) => e.name === "Ended" && why.test(e.message));
  }
});

test("another release", () => {
  const text = readFileSync(new URL("../index.mjs", import.meta.url), "utf8").replace('VERSION = ""', 'VERSION = "v9.8.7"').replace('"./chat.mjs"', JSON.stringify(new URL("../chat.mjs", import.meta.url).href));
  const out = run(`${text}\nfor (let i = 0; i < 2; i++) await validate({ name: "a" }, {}).catch((e) => console.log(e.name, e.message));`);
  const line = "ToolmendError toolmend: this toolmend is .*, and the package is v9.8.7: install both of the same release\n";
  assert.match(out.stdout, new RegExp(`^${line}${line}$`), out.stderr);
});

test("the cases of the library", async (t) => {
  const cases = JSON.parse(readFileSync(new URL("../../cmd/toolmend/internal/lib/testdata/cases.json", import.meta.url)));
  assert.ok(cases.length > 100);
  for (const c of cases) {
    await t.test(c.name, async () => {
      const check = c.rule && ((value) => (c.rule.bad.some((bad) => isDeepStrictEqual(bad, value)) ? c.rule.message : undefined));
      const rules = c.rule ? { [c.rule.tool]: c.rule.path ? { [c.rule.path]: check } : (call) => check(call.args) } : {};
      const stack = new Stack({ rules, ...c.options });
      for (const want of c.validate ?? []) {
        const v = await stack.validate(c.tools.find((d) => d.name === want.call[0]), want.call[1]);
        const got = { args: v.args, unchecked: v.unchecked, issues: v.issues.map((i) => [i.pointer ?? "", i.message]), reply: v.reply };
        assert.deepEqual(got, { args: JSON.parse(want.arguments), unchecked: want.unchecked ?? false, issues: want.issues ?? [], reply: want.reply ?? "" });
      }
      if (!c.answers) return;
      const [replies, caps, got] = [[], [], {}];
      let asked = 0;
      const call = async (messages, tools, settings) => {
        if (settings.max_tokens) caps.push(settings.max_tokens);
        if (asked > 0) replies.push(messages.slice(messages.findLastIndex((m) => m.role === "assistant") + 1).map((m) => m.content));
        const answer = c.answers[asked++];
        if (!answer) throw new Error("the script is over");
        const calls = (answer.calls ?? []).map(([name, a], i) => ({ id: `call_${asked}_${i}`, type: "function", function: { name, arguments: a } }));
        return { role: "assistant", content: answer.text ?? null, reasoning_content: answer.reasoning, tool_calls: calls, finish_reason: answer.finish };
      };
      let message;
      try {
        let choice = c.tool_choice?.name ? c.tool_choice : c.tool_choice?.mode;
        if (c.allowed_tools) choice = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: c.allowed_tools.map((name) => ({ type: "function", function: { name } })) } };
        const messages = [{ role: "user", content: c.user }];
        if (c.behind_results) {
          const earlier = { id: "earlier", type: "function", function: { name: c.tools[0].name, arguments: "{}" } };
          messages.push({ role: "assistant", content: null, tool_calls: [earlier] }, { role: "tool", tool_call_id: "earlier", content: "done" });
        }
        message = await stack.wrap(call)(messages, c.tools, { max_tokens: c.max_tokens, tool_choice: choice, parallel_tool_calls: !c.no_parallel_calls });
        got.status = message.report.status;
      } catch (e) {
        if (!(e instanceof StepError)) throw e;
        [message, got.code] = [e.lastMessage ?? {}, e.code];
      }
      got.calls = (message.tool_calls ?? []).map((m) => [m.function.name, m.function.arguments]);
      Object.assign(got, { text: message.content ?? "", replies, caps });
      assert.deepEqual(Object.fromEntries(Object.entries(got).filter(([, v]) => v?.length)), c.want);
    });
  }
});
