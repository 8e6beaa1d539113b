// An agent of a framework or an SDK, with one tool that reads a file. Arguments: which
// one, the base URL, the prompt, and the folder with the packages. The variable ROW changes what
// it asks for: none, allowed and single forbid calls, and it stops with an error if it gets one;
// container and conversation name the container or the conversation of the answers before. With an
// empty URL the official SDKs read their own variables. The variable RETRIES is how often they repeat
// a refused request; without it they decide.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [way, url, prompt, folder] = process.argv.slice(-4);
globalThis.AI_SDK_LOG_WARNINGS = false;
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));

const api = url ? url + "/v1" : undefined;
const maxRetries = process.env.RETRIES ? Number(process.env.RETRIES) : undefined;
const name = "read_file", description = "Read a file.";
const schema = {
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
  additionalProperties: false,
};
const read = ({ path }) => {
  console.log("call", path);
  return readFile(path, "utf8");
};
const row = process.env.ROW ?? "";
const permitted = (names) => {
  if ((row === "none" && names.length) || (row === "allowed" && names.includes(name)) || (row === "single" && names.length > 1)) {
    throw new Error("forbidden call");
  }
};
const declared = { type: "function", function: { name, description, parameters: schema } };

const ways = {
  async "ai-sdk"(of) {
    const { streamText, tool, jsonSchema, stepCountIs } = await load("ai");
    let model, providerOptions;
    if (of === "messages") {
      const { createAnthropic } = await load("@ai-sdk/anthropic");
      model = createAnthropic({ baseURL: api, apiKey: "k" })("m");
      providerOptions = { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } };
    } else if (of === "responses") {
      const { createOpenAI } = await load("@ai-sdk/openai");
      model = createOpenAI({ baseURL: api, apiKey: "k" }).responses("gpt-5");
      providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"] } };
    } else if (of === "gemini") {
      const { createGoogleGenerativeAI } = await load("@ai-sdk/google");
      model = createGoogleGenerativeAI({ baseURL: url + "/v1beta", apiKey: "k" })("gemini-2.5-pro");
    } else {
      const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
      model = createOpenAICompatible({ name: "any", baseURL: api, apiKey: "none" })("m");
    }
    const read_file = tool({ description, inputSchema: jsonSchema(schema), execute: read });
    const answer = streamText({
      model, prompt, providerOptions, maxRetries, tools: { read_file }, stopWhen: stepCountIs(100),
      onError({ error }) {
        console.log("error", error?.name, error?.statusCode ?? "", error?.data?.error?.message ?? String(error));
        process.exitCode = 1;
      },
    });
    let text = "";
    for await (const part of answer.textStream) text += part;
    return text;
  },

  async "openai-agents-js"(of) {
    const { Agent, run, tool, setTracingDisabled, OpenAIResponsesModel, OpenAIChatCompletionsModel } = await load("@openai/agents");
    const { default: OpenAI } = await load("openai");
    setTracingDisabled(true);
    const Model = of === "chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
    const model = new Model(new OpenAI({ baseURL: api, apiKey: "k" }), "m");
    const agent = new Agent({ name: "reader", model, tools: [tool({ name, description, parameters: schema, strict: false, execute: read })] });
    const result = await run(agent, prompt, { stream: true, maxTurns: 100 });
    for await (const event of result) void event;
    await result.completed;
    return result.finalOutput;
  },

  async langgraph(of) {
    const { createReactAgent } = await load("@langchain/langgraph/prebuilt");
    const { DynamicStructuredTool } = await load("@langchain/core/tools");
    let model;
    if (of === "messages") {
      const { ChatAnthropic } = await load("@langchain/anthropic");
      model = new ChatAnthropic({
        model: "claude-sonnet-4-5", apiKey: "k", anthropicApiUrl: url, maxTokens: 4000, streaming: true,
        thinking: { type: "enabled", budget_tokens: 1024 },
      });
    } else {
      const { ChatOpenAI } = await load("@langchain/openai");
      model = new ChatOpenAI({ model: "m", apiKey: "k", streaming: of === "responses", useResponsesApi: of === "responses", configuration: { baseURL: api } });
    }
    const agent = createReactAgent({ llm: model, tools: [new DynamicStructuredTool({ name, description, schema, func: read })] });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: prompt }] }, { recursionLimit: 200 });
    return messages.at(-1).text;
  },

  async "genai-js"() {
    const { GoogleGenAI } = await load("@google/genai");
    const client = new GoogleGenAI({
      apiKey: "k", httpOptions: { baseUrl: url || undefined, retryOptions: maxRetries === undefined ? undefined : { attempts: 1 + maxRetries } },
    });
    const tools = [{ functionDeclarations: [{ name, description, parametersJsonSchema: schema }] }];
    const toolConfig = row === "none" ? { functionCallingConfig: { mode: "NONE" } } : undefined;
    const chat = client.chats.create({ model: "m", config: { tools, toolConfig } });
    for (let message = prompt; ;) {
      const calls = [];
      let text = "";
      for await (const chunk of await chat.sendMessageStream({ message })) {
        calls.push(...(chunk.functionCalls ?? []));
        text += chunk.candidates?.[0]?.content?.parts?.filter((p) => !p.thought).map((p) => p.text ?? "").join("") ?? "";
      }
      permitted(calls.map((c) => c.name));
      if (!calls.length) return text;
      message = [];
      for (const c of calls) {
        message.push({ functionResponse: { id: c.id, name: c.name, response: { result: await read(c.args) } } });
      }
    }
  },

  async "anthropic-js"() {
    const { default: Anthropic } = await load("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: url || undefined, apiKey: "k", maxRetries });
    const messages = [{ role: "user", content: prompt }];
    const more = { none: { tool_choice: { type: "none" } }, single: { tool_choice: { type: "auto", disable_parallel_tool_use: true } } }[row] ?? {};
    for (;;) {
      const message = await client.messages.stream({
        model: "m", max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 1024 }, messages,
        tools: [{ name, description, input_schema: schema }], ...more,
      }).finalMessage();
      permitted(message.content.filter((b) => b.type === "tool_use").map((b) => b.name));
      if (message.container) more.container = message.container.id;
      messages.push({ role: "assistant", content: message.content });
      const results = [];
      for (const b of message.content) {
        if (b.type === "tool_use") results.push({ type: "tool_result", tool_use_id: b.id, content: await read(b.input) });
      }
      if (!results.length) return message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
      messages.push({ role: "user", content: results });
    }
  },

  async "openai-js"(of) {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL: api, apiKey: "k", maxRetries });
    if (of === "chat") {
      const runner = client.chat.completions.runTools({
        model: "m", stream: true, messages: [{ role: "user", content: prompt }],
        tools: [{ type: "function", function: { name, description, parameters: schema, parse: JSON.parse, function: read } }],
      }, { maxChatCompletions: 100 });
      return runner.finalContent();
    }
    const input = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", name, description, parameters: schema, strict: false }];
    const more = {
      none: { tool_choice: "none" }, single: { parallel_tool_calls: false }, conversation: { conversation: "conv_1", store: true },
      allowed: { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "list_files" }] } },
    }[row];
    if (row === "allowed") tools.push({ type: "function", name: "list_files", parameters: { type: "object", properties: {} }, strict: false });
    for (;;) {
      const response = await client.responses.stream({
        model: "m", store: false, include: ["reasoning.encrypted_content"], input, tools, ...more,
      }).finalResponse();
      if (response.error) throw new Error(response.error.message);
      const calls = response.output.filter((i) => i.type === "function_call");
      permitted(calls.map((c) => c.name));
      if (row === "conversation") input.length = 0; // the provider has them
      else input.push(...response.output);
      if (!calls.length) return response.output_text;
      for (const c of calls) {
        input.push({ type: "function_call_output", call_id: c.call_id, output: await read(JSON.parse(c.arguments)) });
      }
    }
  },

  async "mistral-js"() {
    const { Mistral } = await load("@mistralai/mistralai");
    const client = new Mistral({ apiKey: "k", serverURL: url });
    const messages = [{ role: "user", content: prompt }];
    const more = { none: { toolChoice: "none" }, single: { parallelToolCalls: false } }[row];
    for (;;) {
      let text = "";
      const calls = [];
      for await (const { data } of await client.chat.stream({ model: "m", messages, tools: [declared], ...more })) {
        for (const { delta } of data.choices) {
          text += delta.content ?? "";
          for (const c of delta.toolCalls ?? []) {
            calls[c.index] ??= { id: c.id, type: "function", function: { name: c.function.name, arguments: "" } };
            calls[c.index].function.arguments += c.function.arguments;
          }
        }
      }
      permitted(calls.map((c) => c.function.name));
      if (!calls.length) return text;
      messages.push({ role: "assistant", content: text, toolCalls: calls });
      for (const c of calls) {
        messages.push({ role: "tool", toolCallId: c.id, name: c.function.name, content: await read(JSON.parse(c.function.arguments)) });
      }
    }
  },

  async "ollama-js"() {
    const { Ollama } = await load("ollama");
    const client = new Ollama({ host: url || undefined });
    const messages = [{ role: "user", content: prompt }];
    for (;;) {
      const message = { role: "assistant", content: "", thinking: "", tool_calls: [] };
      for await (const part of await client.chat({ model: "m", messages, tools: [declared], stream: true, think: true })) {
        message.content += part.message.content ?? "";
        message.thinking += part.message.thinking ?? "";
        message.tool_calls.push(...(part.message.tool_calls ?? []));
      }
      if (!message.tool_calls.length) return message.content;
      messages.push(message);
      for (const c of message.tool_calls) {
        messages.push({ role: "tool", tool_name: c.function.name, content: await read(c.function.arguments) });
      }
    }
  },
};

const at = Object.keys(ways).filter((w) => way === w || way.startsWith(w + "-")).sort((a, b) => b.length - a.length)[0];
try {
  console.log(await ways[at](way.slice(at.length + 1)));
  process.exit();
} catch (error) {
  console.log("error", error?.constructor?.name, error?.status ?? error?.status_code ?? "", error?.error?.message ?? String(error));
  process.exit(1);
}
