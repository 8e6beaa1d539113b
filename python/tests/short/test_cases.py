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
            return rule["message"] if value.startswith(rule["prefix"]) else None

        rules = {rule["tool"]: {rule["path"]: check} if "path" in rule else lambda call: check(call.arguments, call)}
    return toolmend.Stack(rules=rules, **case.get("options", {}))


def run(case, how):
    asked, replies = [], []

    def call(messages, tools, **settings):
        if asked:
            last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
            replies.append([m["content"] for m in messages[last + 1 :]])
        asked.append(messages)
        if len(asked) > len(case["answers"]):
            raise RuntimeError("the script is over")
        answer = case["answers"][len(asked) - 1]
        calls = [{"id": f"call_{len(asked)}_{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(answer["calls"] or ())]
        return {"role": "assistant", "content": answer.get("text"), "tool_calls": calls, "finish_reason": answer.get("finish")}

    async def acall(messages, tools, **settings):
        await asyncio.sleep(0)
        return call(messages, tools, **settings)

    settings = {k: case[k] for k in ("max_tokens", "tool_choice") if k in case}
    if "tool_choice" in settings:
        settings["tool_choice"] = settings["tool_choice"].get("mode") or settings["tool_choice"]
    messages, stack = [{"role": "user", "content": case["user"]}], stack_of(case)
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
    got |= {"text": message.get("content") or "", "replies": replies}
    return {k: v for k, v in got.items() if v}


class Cases(unittest.TestCase):
    def test_cases(self):
        with open(FILE, encoding="utf-8") as f:
            cases = json.load(f)
        self.assertGreater(len(cases), 30)
        for case in cases:
            for how in ("sync", "async"):
                with self.subTest(case["name"], how=how):
                    self.assertEqual(run(case, how), case["want"])
