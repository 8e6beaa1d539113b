// Compiled by make inproc: the types fit their use.
import { Stack, validate, StepError, type Rule } from "../index.mjs";
import { toolmend } from "../ai.mjs";
import { wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
const rule: Rule = (c) => (c.args.nights > 30 ? "at most 30" : undefined);
const stack = new Stack({ attempts: 3, rules: { book: rule, "*": { city: (v) => (v === "x" ? { message: "no" } : null) } } });
const call = stack.wrap(async (messages, tools, settings) => ({ role: "assistant", content: "x" }));
const m = await call([{ role: "user", content: "x" }], []);
console.log(m.report.status, m.content, (await validate({ name: "a" }, {})).ok);
wrapLanguageModel({ model: new MockLanguageModelV3({}), middleware: toolmend({ strip: "off", escalate: "large" }, { large: new MockLanguageModelV3({}) }) });
try { /* */ } catch (e) { if (e instanceof StepError) console.log(e.code, e.verdicts[0]?.issues?.[0]?.pointer); }
