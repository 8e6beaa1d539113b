import assert from "node:assert/strict";
import { test } from "node:test";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Stack } from "../index.mjs";

const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));

const tool = { name: "get", parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } };
const answer = (args) => ({ role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "get", arguments: args } }] });
const user = [{ role: "user", content: "x" }];

test("a step is a span around its model calls", async () => {
  const turns = ['{"x":1}', '{"n":1}'];
  const call = async () => trace.getTracer("mine").startActiveSpan("model", (span) => (span.end(), answer(turns.shift())));
  await new Stack().wrap(call)(user, [tool]);
  const [first, second, step] = exporter.getFinishedSpans();
  assert.deepEqual([first.name, second.name, step.name], ["model", "model", "toolmend.step"]);
  for (const s of [first, second]) assert.equal(s.parentSpanContext.spanId, step.spanContext().spanId);
  assert.deepEqual(step.attributes, { "toolmend.status": "valid", "toolmend.attempts": 2 });
});

test("an error is on the span", async () => {
  exporter.reset();
  await assert.rejects(new Stack({ attempts: 1 }).wrap(async () => answer("{}"))(user, [tool]));
  const [step] = exporter.getFinishedSpans();
  assert.deepEqual([step.attributes["toolmend.status"], step.status], ["invalid_tool_call", { code: 2, message: "InvalidToolCall" }]);
});

test("verdicts have spans, too", async () => {
  exporter.reset();
  await new Stack().validate(tool, { n: 1 });
  assert.equal(exporter.getFinishedSpans()[0].name, "toolmend.validate");
});
