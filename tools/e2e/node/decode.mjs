// Decodes answers with an SDK of JavaScript, as programs do. Arguments: the name of the
// SDK, the URL, the tools, and the folder with the packages. Input and output are those of
// ../python/decode.py.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [sdk, url, offered, folder] = process.argv.slice(-4);
globalThis.AI_SDK_LOG_WARNINGS = false;
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));

const tools = JSON.parse(offered);
const messages = [{ role: "user", content: "?" }];
const chatTools = tools.map(({ name, schema }) => ({ type: "function", function: { name, parameters: schema } }));
const headers = (job) => ({ "X-Exchange": String(job.n) });

// Each SDK has the ways to ask it for an answer, by format. A way adds the calls that it
// is given.
const sdks = {
  // A call that this SDK itself calls invalid is none: it runs no tool for it.
  async "ai-sdk"() {
    const { generateText, streamText, tool, jsonSchema } = await load("ai");
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    const { createOpenAI } = await load("@ai-sdk/openai");
    const { createAnthropic } = await load("@ai-sdk/anthropic");
    const { createGoogleGenerativeAI } = await load("@ai-sdk/google");
    const set = Object.fromEntries(tools.map((t) => [t.name, tool({ inputSchema: jsonSchema(t.schema) })]));
    const add = (calls, call) => call.invalid || calls.push([call.toolName, call.input]);
    const way = (create) => async (job, calls) => {
      const model = create({ baseURL: url + "/v1", apiKey: "none", headers: headers(job) });
      const ask = { model, tools: set, prompt: "?", maxRetries: 0, onError() {} };
      if (!job.stream) {
        for (const call of (await generateText(ask)).toolCalls) add(calls, call);
        return;
      }
      for await (const part of streamText(ask).fullStream) {
        if (part.type === "tool-call") add(calls, part);
      }
    };
    return {
      chat: {
        "openai-compatible": way((at) => createOpenAICompatible({ name: "any", ...at })("m")),
        "openai.chat": way((at) => createOpenAI(at).chat("m")),
      },
      responses: { "openai.responses": way((at) => createOpenAI(at).responses("m")) },
      anthropic: { anthropic: way((at) => createAnthropic(at)("m")) },
      gemini: { google: way((at) => createGoogleGenerativeAI({ ...at, baseURL: url + "/v1beta" })("m")) },
    };
  },

  async "openai-js"() {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
    const chat = { model: "m", messages, tools: chatTools };
    const responseTools = tools.map(({ name, schema }) => ({ type: "function", name, parameters: schema, strict: false }));
    const response = { model: "m", input: "?", tools: responseTools };
    const ofMessage = (m) => (m.tool_calls ?? []).filter((c) => c.function).map((c) => [c.function.name, c.function.arguments]);
    const ofItems = (items) => items.filter((i) => i.type === "function_call").map((i) => [i.name, i.arguments]);
    return {
      chat: {
        async helper(job, calls) {
          const answer = job.stream
            ? await client.chat.completions.stream(chat, { headers: headers(job) }).finalChatCompletion()
            : await client.chat.completions.create(chat, { headers: headers(job) });
          calls.push(...ofMessage(answer.choices[0].message));
        },
        async deltas(job, calls) {
          if (!job.stream) return;
          const final = [];
          for await (const chunk of await client.chat.completions.create({ ...chat, stream: true }, { headers: headers(job) })) {
            for (const call of chunk.choices[0]?.delta?.tool_calls ?? []) {
              if (final[call.index]) final[call.index].function.arguments += call.function.arguments;
              else final[call.index] = call;
            }
          }
          calls.push(...ofMessage({ tool_calls: Object.values(final) }));
        },
      },
      responses: {
        async helper(job, calls) {
          const answer = job.stream
            ? await client.responses.stream(response, { headers: headers(job) }).finalResponse()
            : await client.responses.create(response, { headers: headers(job) });
          calls.push(...ofItems(answer.output));
        },
        async items(job, calls) {
          if (!job.stream) return;
          for await (const event of await client.responses.create({ ...response, stream: true }, { headers: headers(job) })) {
            if (event.type === "response.output_item.done") calls.push(...ofItems([event.item]));
          }
        },
      },
    };
  },

  async "anthropic-js"() {
    const { default: Anthropic } = await load("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
    const ask = { model: "m", max_tokens: 9, messages, tools: tools.map(({ name, schema }) => ({ name, input_schema: schema })) };
    return {
      anthropic: {
        async helper(job, calls) {
          const answer = job.stream
            ? await client.messages.stream(ask, { headers: headers(job) }).finalMessage()
            : await client.messages.create(ask, { headers: headers(job) });
          calls.push(...answer.content.filter((b) => b.type === "tool_use").map((b) => [b.name, b.input]));
        },
      },
    };
  },

  async "genai-js"() {
    const { GoogleGenAI } = await load("@google/genai");
    const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: url } });
    const functionDeclarations = tools.map(({ name, schema }) => ({ name, parametersJsonSchema: schema }));
    return {
      gemini: {
        async generate(job, calls) {
          const ask = { model: "m", contents: "?", config: { tools: [{ functionDeclarations }], httpOptions: { headers: headers(job) } } };
          const answers = job.stream ? await client.models.generateContentStream(ask) : [await client.models.generateContent(ask)];
          for await (const answer of answers) calls.push(...(answer.functionCalls ?? []).map((c) => [c.name, c.args ?? {}]));
        },
      },
    };
  },

  async "ollama-js"() {
    const { Ollama } = await load("ollama");
    return {
      ollama: {
        async chat(job, calls) {
          const client = new Ollama({ host: url, headers: headers(job) });
          const asked = await client.chat({ model: "m", messages, tools: chatTools, stream: job.stream });
          for await (const answer of job.stream ? asked : [asked]) {
            calls.push(...(answer.message?.tool_calls ?? []).map((c) => [c.function.name, c.function.arguments]));
          }
        },
      },
    };
  },
};

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "");
const ways = await sdks[sdk]();
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const result = {};
  for (const [name, way] of Object.entries(ways[job.format])) {
    const calls = (result[name] = []);
    await way(job, calls).catch(() => {});
    result[name] = calls.filter(([called]) => called).map((call) => call.map(text));
  }
  console.log(JSON.stringify({ n: job.n, calls: result }));
}
