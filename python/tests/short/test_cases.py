"""The cases that the library has in Go: cmd/toolmend/internal/lib/testdata/cases.json."""

import asyncio
import json
import logging
import os
import unittest

import toolmend

logging.getLogger("toolmend").addHandler(logging.NullHandler())
FILE = os.path.join(os.path.dirname(__file__), "../../../cmd/toolmend/internal/lib/testdata/cases.json")


def stack_of(case):
    rules, rule = {}, case.get("rule")
    if rule:

        def check(value, call):
            return rule["message"] if value in rule["bad"] else None

        rules = {rule["tool"]: {rule["path"]: check} if "path" in rule else lambda call: check(call.args, call)}
    return toolmend.Stack(rules=rules, **case.get("options", {}))


def run(case, how):
    asked, replies, caps = [], [], []

    def call(messages, tools, **settings):
        if asked:
            last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
            replies.append([m["content"] for m in messages[last + 1 :]])
        asked.append(messages)
        caps.extend(settings[k] for k in ("max_tokens",) if k in settings)
        if len(asked) > len(case["answers"]):
            raise RuntimeError("the script is over")
        answer = case["answers"][len(asked) - 1]
        calls = [{"id": f"call_{len(asked)}_{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(answer["calls"] or ())]
        return {"role": "assistant", "content": answer.get("text"), "reasoning_content": answer.get("reasoning"), "tool_calls": calls, "finish_reason": answer.get("finish")}

    async def acall(messages, tools, **settings):
        await asyncio.sleep(0)
        return call(messages, tools, **settings)

    settings = {k: case[k] for k in ("max_tokens", "tool_choice") if k in case}
    if "tool_choice" in settings:
        settings["tool_choice"] = settings["tool_choice"].get("mode") or settings["tool_choice"]
    if "allowed_tools" in case:
        settings["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": n}} for n in case["allowed_tools"]]}}
    if "no_parallel_calls" in case:
        settings["parallel_tool_calls"] = False
    messages, stack = [{"role": "user", "content": case["user"]}], stack_of(case)
    if "behind_results" in case:
        call_before = {"id": "earlier", "type": "function", "function": {"name": case["tools"][0]["name"], "arguments": "{}"}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call_before]}, {"role": "tool", "tool_call_id": "earlier", "content": "done"}]
    got = {}
    try:
        if how == "sync":
            message = stack(call)(messages, case["tools"], **settings)
        else:
            message = asyncio.run(stack(acall)(messages, case["tools"], **settings))
        got["status"] = message.report.get("status", "")
    except toolmend.StepError as e:
        message, got["code"] = e.message or {}, e.code
    got["calls"] = [[c["function"]["name"], c["function"]["arguments"]] for c in message.get("tool_calls") or ()]
    got |= {"text": message.get("content") or "", "replies": replies, "caps": caps}
    return {k: v for k, v in got.items() if v}


def verdicts(case, how):
    stack, tools = stack_of(case), {t["name"]: t for t in case["tools"]}
    for want in case["validate"]:
        name, arguments = want["call"]
        v = stack.validate(tools[name], arguments) if how == "sync" else asyncio.run(stack.avalidate(tools[name], arguments))
        got = {"args": v.args, "unchecked": v.unchecked, "issues": [[i.get("pointer", ""), i["message"]] for i in v.issues], "reply": v.reply}
        yield got, {"args": json.loads(want["arguments"]), "unchecked": want.get("unchecked", False), "issues": want.get("issues", []), "reply": want.get("reply", "")}


class Cases(unittest.TestCase):
    def test_cases(self):
        with open(FILE, encoding="utf-8") as f:
            cases = json.load(f)
        self.assertGreater(len(cases), 100)
        for case in cases:
            for how in ("sync", "async"):
                with self.subTest(case["name"], how=how):
                    if "answers" in case:
                        self.assertEqual(run(case, how), case["want"])
                    for got, want in verdicts(case, how) if "validate" in case else ():
                        self.assertEqual(got, want)
