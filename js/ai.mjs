// The stack as a middleware of the Vercel AI SDK:
//
//   const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: toolmend({ attempts: 3 }) });
//
// In a stream, text is shown as it comes and calls once they are valid. The SDK cannot discard text:
// what an attempt that is re-asked has shown stays, as a block of its own.

import { ownOf, Stack, textOf } from "./index.mjs";

export function toolmend(options = {}, models = {}) {
  const stack = options instanceof Stack ? options : new Stack(options);
  const other = (asked, model) => models[asked.settings?.model] ?? model; // of escalate
  return {
    specificationVersion: "v3",

    async wrapGenerate({ params, model }) {
      return new Step(params, model).run(stack, (own, asked) => other(asked, model).doGenerate(own));
    },

    async wrapStream({ params, model }) {
      const gone = new AbortController(); // the consumer has cancelled the stream
      const step = new Step({ ...params, abortSignal: AbortSignal.any([gone.signal, ...(params.abortSignal ? [params.abortSignal] : [])]) }, model);
      let out;
      const stream = new ReadableStream({
        start: (c) => void (out = { enqueue: (part) => gone.signal.aborted || c.enqueue(part), close: () => gone.signal.aborted || c.close() }),
        cancel: (reason) => gone.abort(reason),
      });
      const blocks = new Blocks(out);
      const run = async () => {
        try {
          const call = async (own, asked) => collect(await other(asked, model).doStream(own), asked, out);
          const result = await step.run(stack, call, (e) => blocks.show(e));
          blocks.end();
          for (const c of result.content) {
            if (c.type === "tool-call" && !c.providerExecuted) {
              out.enqueue({ type: "tool-input-start", id: c.toolCallId, toolName: c.toolName });
              out.enqueue({ type: "tool-input-delta", id: c.toolCallId, delta: c.input });
              out.enqueue({ type: "tool-input-end", id: c.toolCallId });
              out.enqueue(c);
            } else if ((c.type === "text" || c.type === "reasoning") && c.text && !blocks.shown) {
              blocks.show({ kind: c.type, text: c.text }), blocks.end();
            }
          }
          out.enqueue({ type: "finish", finishReason: result.finishReason, usage: result.usage, providerMetadata: result.providerMetadata });
        } catch (error) {
          blocks.end();
          out.enqueue({ type: "error", error });
        }
        out.close();
      };
      run();
      return { stream };
    },
  };
}

// Reads a stream to its end: the result that doGenerate would have had.
async function collect({ stream }, asked, out) {
  const content = [];
  const open = new Map();
  const result = { content, warnings: [] };
  for await (const part of stream) {
    asked.signal.throwIfAborted(); // ends the provider's stream
    const [kind, phase] = part.type.split("-");
    if (kind === "text" || kind === "reasoning") {
      if (phase === "start") {
        open.set(part.id, { type: kind, text: "" });
        content.push(open.get(part.id));
      }
      const block = open.get(part.id);
      block.text += part.delta ?? "";
      block.providerMetadata = part.providerMetadata ?? block.providerMetadata;
      if (part.delta) asked.emit(kind, part.delta);
    } else if (part.type === "tool-call") {
      content.push(part);
    } else if (part.type === "finish") {
      Object.assign(result, { finishReason: part.finishReason, usage: part.usage, providerMetadata: part.providerMetadata });
    } else if (part.type === "error") {
      throw part.error;
    } else if (!part.type.startsWith("tool-input") && !(part.type === "stream-start" && asked.n > 1)) {
      out.enqueue(part); // sources, files, metadata
      if (["source", "file", "tool-result"].includes(part.type)) content.push(part);
    }
  }
  return result;
}

// Blocks of text and reasoning in a stream of the SDK.
class Blocks {
  #n = 0;
  #kind;
  shown = false;

  constructor(out) {
    this.out = out;
  }

  show({ kind, text }) {
    if (kind === "tool_call") return;
    if (kind !== this.#kind || kind === "reset") this.end();
    if (kind === "reset") return void (this.shown = false);
    if (!this.#kind) {
      this.#kind = kind;
      this.out.enqueue({ type: `${kind}-start`, id: `toolmend-${++this.#n}` });
    }
    this.shown = true;
    this.out.enqueue({ type: `${kind}-delta`, id: `toolmend-${this.#n}`, delta: text });
  }

  end() {
    if (this.#kind) this.out.enqueue({ type: `${this.#kind}-end`, id: `toolmend-${this.#n}` });
    this.#kind = undefined;
  }
}

// One step: what the SDK's own messages are, and the same in the form of the protocol.
class Step {
  answers = new Map();

  constructor(params, model) {
    this.given = params;
    // The messages as the protocol has them: each result of a tool is one.
    this.natives = params.prompt.flatMap((m) => (m.role === "tool" ? m.content.map((result) => ({ ...m, content: [result] })) : [m]));
    const tools = (params.tools ?? []).map((t) =>
      t.type === "function" ? { name: t.name, description: t.description, parameters: t.inputSchema } : { name: t.name, kind: "hosted" });
    const choice = params.toolChoice ?? { type: "auto" };
    const tool_choice = choice.type === "tool" ? { name: choice.toolName } : choice.type === "auto" ? {} : { mode: choice.type };
    this.settings = { model: model.modelId, tool_choice, max_tokens: params.maxOutputTokens, stop: params.stopSequences };
    this.request = { messages: this.natives.map(toWire), tools, request: this.settings };
  }

  // Runs the step. call makes one model call with parameters of the SDK.
  async run(stack, call, onEvent) {
    const ask = async (asked) => this.answered(asked.n, await call(this.params(asked), asked));
    const native = (m) => edited(ownOf(m, this.answers)?.content ?? [], m);
    return this.end(await stack.step({ ...this.request, ask, native, onEvent, signal: this.given.abortSignal }));
  }

  // The parameters of one model call.
  params(asked) {
    const prompt = [];
    const native = (m) => fromWire(m, ownOf(m, this.answers, m.role === "user" ? this.natives : []));
    for (const m of [...this.natives.slice(0, asked.keep), ...asked.messages.map(native)]) {
      const last = prompt.at(-1);
      if (m.role === "tool" && last?.role === "tool") prompt.splice(-1, 1, { ...last, content: [...last.content, ...m.content] });
      else prompt.push(m);
    }
    const params = { ...this.given, prompt };
    if (asked.tools) params.tools = this.given.tools?.filter((t) => asked.tools.some((a) => a.name === t.name));
    if (asked.settings) {
      const { tool_choice: choice, max_tokens, stop } = asked.settings;
      if (max_tokens !== this.settings.max_tokens) params.maxOutputTokens = max_tokens;
      if (stop) params.stopSequences = stop;
      params.toolChoice = choice?.name ? { type: "tool", toolName: choice.name } : { type: choice?.mode ?? "auto" };
    }
    params.abortSignal = asked.signal;
    return params;
  }

  // The response of one model call.
  answered(n, result) {
    this.answers.set(n, result);
    const { inputTokens: i, outputTokens: o } = result.usage ?? {};
    return {
      message: toMessage("assistant", result.content),
      usage: { input: i?.total ?? 0, cached: i?.cacheRead ?? 0, output: o?.total ?? 0, reasoning: o?.reasoning ?? 0 },
      finish_reason: result.finishReason?.raw ?? result.finishReason?.unified.replace("-", "_"),
    };
  }

  end(frame) {
    const final = frame.response;
    if (!final) return this.answers.get(frame.n);
    const own = this.answers.get(frame.n) ?? ownOf(final.message, this.answers) ?? [...this.answers.values()].at(-1); // calls that were read in a text
    return { ...own, content: frame.n ? own.content : edited(own?.content ?? [], final.message), usage: this.#usage(own.usage) };
  }

  // The sum of all attempts.
  #usage(of) {
    const all = [...this.answers.values()].map((a) => a.usage).filter(Boolean);
    const sum = (side) => Object.fromEntries(Object.keys(of?.[side] ?? {}).map((k) =>
      [k, all.every((u) => u[side]?.[k] === undefined) ? undefined : all.reduce((s, u) => s + (u[side]?.[k] ?? 0), 0)]));
    return of && { ...of, inputTokens: sum("inputTokens"), outputTokens: sum("outputTokens") };
  }
}

function toMessage(role, content) {
  const m = { role, parts: [] };
  for (const p of content) {
    if (p.type === "text") m.parts.push({ text: p.text });
    else if (p.type === "reasoning") m.parts.push({ kind: "reasoning", text: p.text });
    else if (p.type !== "tool-call" || p.providerExecuted) m.parts.push({ kind: "opaque" });
    else (m.tool_calls ??= []).push({ id: p.toolCallId, name: p.toolName, arguments: typeof p.input === "string" ? p.input : JSON.stringify(p.input) });
  }
  return m;
}

// The message of the protocol for one of the SDK, with one result if it has results.
function toWire(m) {
  if (m.role === "system") return { role: "system", parts: [{ text: m.content }] };
  if (m.role !== "tool") return toMessage(m.role, m.content);
  const [r] = m.content;
  if (r.type !== "tool-result") return { role: "user", parts: [{ kind: "opaque" }] };
  const text = r.output.type.endsWith("text") ? r.output.value : JSON.stringify(r.output.value ?? r.output.reason ?? "");
  return { role: "tool", parts: [{ text }], tool_call_id: r.toolCallId, tool_name: r.toolName, is_error: /^(error|execution)/.test(r.output.type) };
}

// The content of a result with the calls of m. What only the provider reads stays.
function edited(own, m) {
  const calls = [...(m.tool_calls ?? [])];
  const kept = own.flatMap((p) => {
    if (p.type !== "tool-call" || p.providerExecuted) return [p];
    const c = calls.shift();
    return c ? [{ ...p, toolCallId: c.id, toolName: c.name, input: c.arguments }] : [];
  });
  const text = textOf(m);
  const same = own.filter((p) => p.type === "text").map((p) => p.text).join("") === text;
  return [
    ...(same ? kept : [...(text ? [{ type: "text", text }] : []), ...kept.filter((p) => p.type !== "text")]),
    ...calls.map((c) => ({ type: "tool-call", toolCallId: c.id, toolName: c.name, input: c.arguments })),
  ];
}

// The SDK's message for one of the protocol.
function fromWire(m, own) {
  if (m.role === "system") return { role: "system", content: textOf(m) };
  if (m.role === "user" && own?.role === "user" && textOf(toWire(own)) === textOf(m)) return own; // with its images
  if (m.role === "user") return { role: "user", content: [{ type: "text", text: textOf(m) }] };
  if (m.role === "tool") {
    const output = { type: m.is_error ? "error-text" : "text", value: textOf(m) };
    return { role: "tool", content: [{ type: "tool-result", toolCallId: m.tool_call_id, toolName: m.tool_name, output }] };
  }
  return {
    role: "assistant",
    content: edited(own?.content ?? [], m).filter((p) => ["text", "reasoning", "tool-call"].includes(p.type)).map(({ providerMetadata, ...p }) => ({
      ...p,
      ...(p.type === "tool-call" && { input: JSON.parse(p.input || "{}") }),
      ...(providerMetadata && { providerOptions: providerMetadata }), // signatures
    })),
  };
}
