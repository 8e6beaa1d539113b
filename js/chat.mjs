// The stack around a function call(messages, tools, settings) with the messages of OpenAI's Chat Completions.

import { ownOf, textOf, toolToWire } from "./index.mjs";

export function wrap(stack, call) {
  return async (messages, tools = [], settings = {}) => {
    const answers = new Map();
    const wireTools = tools.map(toolToWire);
    const allowed = settings.tool_choice?.type === "allowed_tools" ? (settings.tool_choice.allowed_tools ?? settings.tool_choice) : undefined;
    const request = { tool_choice: choiceToWire(allowed ? allowed.mode : settings.tool_choice), no_parallel_calls: settings.parallel_tool_calls === false };
    if (allowed) request.allowed_tools = allowed.tools.map((t) => (t.function ?? t.custom ?? t).name);
    const limit = settings.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
    for (const [key, value] of [["model", settings.model], ["max_tokens", settings[limit]], ["stop", settings.stop]]) {
      if (value != null) request[key] = key === "stop" ? [value].flat() : value;
    }
    const native = (m, own = {}) => messageFromWire(m, ownOf(m, answers, messages) ?? own);
    const ask = async (asked) => {
      const names = (asked.tools ?? wireTools).map((t) => t.name);
      const changed = { ...settings };
      for (const key of asked.settings ? ["model", "max_tokens", "stop", "tool_choice"] : []) {
        const value = asked.settings[key];
        if (JSON.stringify(value) !== JSON.stringify(request[key])) changed[key === "max_tokens" ? limit : key] = key === "tool_choice" ? choiceFromWire(value) : value;
      }
      if (asked.signal) changed.signal = asked.signal;
      const response = await call(
        [...messages.slice(0, asked.keep), ...asked.messages.map(native)], tools.filter((t, i) => names.includes(wireTools[i].name)), changed);
      const { message, finish_reason } = response.choices?.[0] ?? { message: response, finish_reason: response.finish_reason };
      answers.set(asked.n, message);
      const usage = { input: response.usage?.prompt_tokens ?? 0, output: response.usage?.completion_tokens ?? 0 };
      return { message: messageToWire(message), finish_reason: finish_reason ?? "", usage };
    };
    const end = await stack.step({ request, messages: messages.map(messageToWire), tools: wireTools, ask, native, signal: settings.signal });
    const last = [...answers.values()].at(-1); // of a call that was read in a text
    const message = end.n ? { ...answers.get(end.n) } : native(end.response.message, last);
    return Object.defineProperties(message, { report: { value: end.report }, usage: { value: end.response?.usage ?? {} } }); // JSON leaves them out
  };
}

export function messageToWire(m) {
  const content = typeof m.content === "string" ? [{ type: "text", text: m.content }] : (m.content ?? []);
  const parts = content.filter((p) => p.text !== "").map((p) => (p.type === "text" ? { text: p.text } : { kind: "opaque" }));
  if (m.role === "tool") return { role: "tool", parts, tool_call_id: m.tool_call_id ?? "", tool_name: m.name ?? "" };
  if (m.reasoning_content) parts.unshift({ kind: "reasoning", text: m.reasoning_content });
  const calls = (m.tool_calls ?? []).map((c) => c.type === "custom"
    ? { id: c.id ?? "", name: c.custom.name, arguments: c.custom.input ?? "", kind: "custom" }
    : { id: c.id ?? "", name: c.function.name, arguments: c.function.arguments ?? "" });
  return { role: m.role === "developer" ? "system" : m.role, parts, ...(calls.length && { tool_calls: calls }) };
}

// The message with the text and the calls of m. Its other members stay.
export function messageFromWire(m, own) {
  const { tool_calls: was = [], ...rest } = own;
  const message = { ...rest, role: own.role ?? m.role };
  const text = textOf(m);
  if (!own.role || text !== textOf(messageToWire(own))) message.content = m.role === "assistant" ? text || null : text;
  if (m.role === "tool") message.tool_call_id = m.tool_call_id;
  const calls = (m.tool_calls ?? []).map((c, i) => {
    const [kind, body] = c.kind === "custom" ? ["custom", "input"] : ["function", "arguments"];
    const old = was[i]?.[kind] ? was[i] : { type: kind };
    return { ...old, id: c.id, [kind]: { ...old[kind], name: c.name, [body]: c.arguments } };
  });
  return calls.length ? { ...message, tool_calls: calls } : message;
}

function choiceToWire(choice) {
  const name = (choice?.function ?? choice?.custom ?? choice)?.name;
  const mode = choice?.type ?? choice;
  return name ? { name } : mode === "any" ? { mode: "required" } : ["none", "required"].includes(mode) ? { mode } : {};
}

function choiceFromWire(choice) {
  return choice?.name ? { type: "function", function: { name: choice.name } } : choice?.mode || "auto";
}
