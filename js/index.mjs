// Toolmend in a program of Node, Bun or Deno. The stack runs in a child process, the binary of the package.
// The protocol is in docs/protocol.md.

import { AsyncResource } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { wrap } from "./chat.mjs";

const VERSION = ""; // the release of the binary, such as v0.1.0: the builder of the package writes it
const MAX_LINE = 64 << 20;

// The base of the errors of this package.
export class ToolmendError extends Error {
  name = "ToolmendError";
}

// The child process ended during the step. The next step starts another one.
export class Ended extends ToolmendError {
  name = "Ended";
}

// A step without a valid message.
export class StepError extends ToolmendError {
  constructor(frame, lastMessage, options) {
    super(frame.message, options);
    this.name = frame.code === "invalid_tool_call" ? "InvalidToolCall" : "StepError";
    const { code, verdicts = [], replies = [], report = {}, response } = frame; // response: the last one, as the protocol has it
    Object.assign(this, { code, verdicts, replies, report, response, lastMessage }); // lastMessage: its message in the framework's form
  }
}

// A rule throws it: the call is invalid. The model reads the text.
export class Invalid extends Error {
  name = "Invalid";
  constructor(message, pointer = "") {
    super(message);
    this.pointer = String(pointer); // it must become JSON
  }
}

function findBinary() {
  const name = `@toolmend/${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/toolmend${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    throw new ToolmendError(`toolmend: the package ${name} is not installed: install toolmend again without --omit=optional, or set TOOLMEND_BIN`);
  }
}

class Child {
  #routes = new Map();
  #ids = 0;
  ended; // why

  constructor(binary) {
    const env = process.env.SystemRoot ? { SystemRoot: process.env.SystemRoot } : {}; // Windows starts no program without it
    this.process = spawn(binary, ["lib"], { env, stdio: ["pipe", "pipe", "pipe"], detached: process.platform !== "win32", windowsHide: true }); // Ctrl-C is for the host
    let left = "";
    let why = "";
    this.process.stdin.on("error", () => {}); // the end is reported
    this.process.stderr.setEncoding("utf8").on("data", (text) => (why = (why + text).slice(0, 2000)));
    this.process.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (left + text).split("\n");
      left = lines.pop();
      for (const line of lines) {
        let frame;
        try {
          frame = JSON.parse(line);
        } catch {
          end("toolmend: the child process sent a line that is not a frame");
          return void this.process.kill("SIGKILL");
        }
        if (frame.id !== undefined) this.#routes.get(frame.id)?.(frame);
        else if (frame.type === "error") [why, this.refused] = [frame.message, frame.message.includes("install both")];
      }
    });
    const end = (text) => {
      if (this.ended) return;
      this.ended = why.trim() || text;
      for (const route of [...this.#routes.values()]) route({ type: "ended" });
    };
    this.process.on("close", (code, signal) => end(`toolmend: the child process ended with ${signal ?? `code ${code}`}`));
    this.process.on("error", (e) => end(`toolmend: ${binary} does not start: ${e.message}`));
    this.#busy(false);
    this.send({ type: "hello", versions: [1], release: VERSION });
  }

  // An idle child keeps no program alive.
  #busy(on) {
    if (!this.process.pid) return; // it did not start
    for (const h of [this.process, this.process.stdin, this.process.stdout, this.process.stderr]) on ? h.ref?.() : h.unref?.();
  }

  send(frame) {
    const line = JSON.stringify(frame);
    const size = Buffer.byteLength(line) + 1;
    if (size > MAX_LINE) throw new ToolmendError(`toolmend: a frame of ${size} bytes is larger than the limit of ${MAX_LINE}`);
    this.process.stdin.write(line + "\n");
  }

  register(route) {
    if (this.#routes.size === 0) this.#busy(true);
    this.#routes.set(++this.#ids, route);
    return this.#ids;
  }

  forget(id) {
    if (this.#routes.delete(id) && this.#routes.size === 0) this.#busy(false);
  }
}

const children = new Map();
let found; // the binary: looking for it takes as long as a step

function childOf(binary) {
  const old = children.get(binary);
  if (old?.ended && old.refused) throw new ToolmendError(old.ended);
  if (!old || old.ended) children.set(binary, new Child(binary));
  return children.get(binary);
}

// Runs a function in a span, if the program has OpenTelemetry: its API is registered under this symbol.
function inSpan(name, run) {
  const tracer = globalThis[Symbol.for("opentelemetry.js.api.1")]?.trace?.getTracer("toolmend");
  if (!tracer) return run();
  const failed = (span) => (e) => {
    span.setStatus({ code: 2, message: e?.name });
    throw e;
  };
  return tracer.startActiveSpan(name, (span) => run(span).catch(failed(span)).finally(() => span.end()));
}

const names = new Map(); // of tool sets, by their text
let stacks = 0, sets = 0;

function nameOf(tools) {
  const text = JSON.stringify(tools);
  if (!names.has(text)) {
    if (names.size > 100) names.clear();
    names.set(text, `k${++sets}`);
  }
  return names.get(text);
}

// Validates, repairs and re-asks. See index.d.mts.
export class Stack {
  #name = `s${++stacks}`;
  #checks = [];
  #options;
  #log;
  #onReport;
  #binary;

  constructor({ rules = {}, onReport, log, binary, ...options } = {}) {
    const wire = [];
    for (const [tool, checks] of Object.entries(rules)) {
      for (const [path, check] of typeof checks === "function" ? [["", checks]] : Object.entries(checks)) {
        wire.push({ tool, path });
        this.#checks.push(path ? (call, value) => check(value, call) : check);
      }
    }
    [this.#log, this.#onReport, this.#binary, this.#options] = [log ?? (() => {}), onReport, binary, wire.length ? { ...options, rules: wire } : options];
  }

  wrap(call) {
    return wrap(this, call);
  }

  async validate(tool, args, { signal } = {}) {
    const wire = toolToWire(tool);
    const calls = [{ id: "c", name: wire.name, arguments: typeof args === "string" ? args : JSON.stringify(args) }];
    const { verdicts, replies } = await inSpan("toolmend.validate", (span) => this.#run({ type: "validate", calls }, [], [wire], { span, signal }));
    const { call, issues = [], changes = [], unchecked = false } = verdicts[0];
    let parsed = call.arguments;
    try {
      parsed = JSON.parse(call.arguments || "{}");
    } catch {} // it stays the text
    return { ok: issues.length === 0, args: parsed, issues, changes, unchecked, reply: textOf({ parts: (replies ?? []).flatMap((r) => r.parts) }) };
  }

  step({ request, messages, tools, ask, native, onEvent, signal }) {
    const frame = { type: "step", request, stream: !!onEvent };
    return inSpan("toolmend.step", (span) => this.#run(frame, messages, tools, { ask, native, onEvent, signal, span }));
  }

  async #run(frame, messages, tools, how, tries = 0, missing = []) {
    const { ask, onEvent, signal, span } = how;
    signal?.throwIfAborted();
    const child = childOf(this.#binary ?? (found ??= process.env.TOOLMEND_BIN || findBinary()));
    const [stack, set] = [this.#name, nameOf(tools)];
    const [errors, open] = [new Map(), new Map()];
    const context = new AsyncResource("toolmend"); // of the caller, for its model and its rules
    let id, abort, asked = false, kept = missing.length;
    const show = async (event) => onEvent(event);
    const load = async (n) => child.send({ type: "messages", id, n, messages });
    const reply = async ({ type, n, ...more }) => {
      const stop = new AbortController();
      open.set(n, stop);
      asked = true;
      const send = (result) => child.send({ type: type === "rule" ? "findings" : "answer", id, n, ...result });
      try {
        if (type === "rule") {
          const call = { ...more.call, args: JSON.parse(more.call.arguments || "{}"), siblings: more.siblings ?? [], signal: stop.signal };
          const found = (await this.#checks[more.rule](call, more.value)) ?? [];
          send({ issues: [found].flat().map((f) => (typeof f === "string" ? { message: f } : f)) });
        } else {
          const emit = (kind, text) => child.send({ type: "chunk", id, n, events: [{ kind, text }] });
          const { keep = 0, messages = [], tools, request: settings } = more;
          send({ response: await ask({ n, keep, messages, tools, settings, emit, signal: stop.signal }) });
        }
      } catch (e) {
        if (type === "rule" && e instanceof Invalid) return send({ issues: [{ message: e.message, pointer: e.pointer }] });
        errors.set(n, e);
        const status = e?.statusCode ?? e?.status;
        send({ error: { message: String(e).slice(0, 16000), status: Number.isInteger(status) ? status : 0 } });
      } finally {
        open.delete(n);
      }
    };
    try {
      const end = await new Promise((resolve, reject) => {
        abort = (e) => {
          child.send({ type: "cancel", id });
          reject(e instanceof Event ? signal.reason : e);
        };
        id = child.register((got) => {
          if (got.type === "event") context.runInAsyncScope(show, undefined, got.event).catch(abort);
          else if (got.type === "ask" || got.type === "rule") context.runInAsyncScope(reply, undefined, got).catch(abort);
          else if (got.type === "load") load(got.n).catch(abort);
          else if (got.type === "stop") open.get(got.n)?.abort();
          else if (got.type !== "result" || kept-- <= 0) resolve(got);
          else for (const note of got.notes ?? []) this.#log(note);
        });
        signal?.addEventListener("abort", abort);
        for (const type of missing) child.send({ type, id, stack, ...(type === "open" ? { options: this.#options } : { set, tools }) });
        const call_ids = messages.filter((m) => m.tool_calls).flatMap((m) => m.tool_calls.map((c) => c.id));
        child.send({ ...frame, id, stack, set, length: messages.length, call_ids });
        if (child.ended) resolve({ type: "ended" });
      });
      if (tries < 3 && !asked && ((end.type === "ended" && !child.refused) || end.code?.startsWith("unknown"))) { // nothing has happened
        const missing = { unknown_stack: ["open", "tools"], unknown_set: ["tools"] }[end.code] ?? [];
        return await this.#run(frame, messages, tools, how, tries + 1, missing);
      }
      return this.#end(end, child, errors, frame.type === "step", how);
    } finally {
      child.forget(id);
      for (const stop of open.values()) stop.abort();
      signal?.removeEventListener("abort", abort);
    }
  }

  #end(end, child, errors, isStep, { native, span }) {
    if (end.type === "ended") throw new (child.refused ? ToolmendError : Ended)(child.ended);
    if (end.code === "options") throw new ToolmendError(`toolmend: ${end.message}`);
    for (const line of end.log ?? []) this.#log(line);
    end.report ??= { status: end.status ?? "", attempts: [{}], final: 0 };
    span?.setAttributes({ "toolmend.status": end.code ?? end.report.status ?? "", "toolmend.attempts": end.report.attempts?.length ?? 0 });
    if (isStep) this.#onReport?.(end.report);
    if (end.type === "result") return end;
    if (errors.has(end.n) && !["invalid_tool_call", "rule_failed"].includes(end.code)) throw errors.get(end.n);
    throw new StepError(end, end.response && native?.(end.response.message), { cause: errors.get(end.n) });
  }
}

// Stack().validate.
export const validate = (tool, args) => (children.stack ??= new Stack()).validate(tool, args);

// The text of a message of the protocol.
export const textOf = (m) => (m.parts ?? []).filter((p) => !p.kind).map((p) => p.text ?? "").join("");

// The host's own message that a message of the protocol is from: m2 is messages[2], a1 the answer to question 1.
export function ownOf(m, answers, messages = []) {
  if (m.native?.dialect !== "host") return undefined;
  const [kind, i] = [m.native.raw[0], Number(m.native.raw.slice(1))];
  return kind === "m" ? messages[i] : answers.get(i);
}

// A tool in the form of OpenAI, Anthropic, MCP or the protocol.
export function toolToWire(tool) {
  const f = tool.function ?? tool.custom ?? tool;
  const parameters = f.parameters ?? f.input_schema ?? f.inputSchema;
  const name = f.name ?? tool.type;
  if (!parameters && (tool.type ?? "function") !== "function") return { name, kind: tool.type === "custom" ? "custom" : "hosted" }; // free text; or the provider runs it
  return { name, description: f.description ?? "", parameters: parameters ?? { type: "object" }, ...(tool.destructive && { destructive: true }) };
}
