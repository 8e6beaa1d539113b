"""The cases of the library through the frameworks: what reaches the tools."""

import json
import os

import pytest
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import ModelRequest as PydanticRequest
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition

import toolmend
from toolmend.langchain import ToolmendMiddleware
from toolmend.pydantic_ai import ToolmendModel

FILE = os.path.join(os.path.dirname(__file__), "../../../cmd/toolmend/internal/lib/testdata/cases.json")
CASES = [c for c in json.load(open(FILE, encoding="utf-8")) if "answers" in c and "allowed_tools" not in c]


def stack_of(case):
    rules, rule = {}, case.get("rule")
    if rule:

        def check(value, call):
            return rule["message"] if value in rule["bad"] else None

        rules = {rule["tool"]: {rule["path"]: check} if "path" in rule else lambda call: check(call.args, call)}
    return toolmend.Stack(rules=rules, **case.get("options", {}))


def want_of(case):
    want = {k: v for k, v in case["want"].items() if k in ("code", "calls", "text")}
    return want | {"calls": [[n, a] for n, a in want.get("calls", [])], "asks": len(case["want"].get("replies", [])) + 1}


def arguments(a):
    """What a framework that parses the arguments makes of them."""
    try:
        return json.dumps(json.loads(a or "{}"))
    except ValueError:
        return a


def same(got, want):
    got = {k: v for k, v in got.items() if v}
    normal = {k: [[n, arguments(a)] for n, a in v] if k == "calls" else v for k, v in want.items() if v}
    got["calls"] = [[n, arguments(a)] for n, a in got.get("calls", [])]
    normal.setdefault("calls", [])
    assert got == normal


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_langchain(case):
    asked, got = [], {}

    def handler(request):
        asked.append(request)
        answer = case["answers"][len(asked) - 1]
        good, broken = [], []
        for i, (name, a) in enumerate(answer["calls"] or ()):
            try:
                good.append({"id": f"c{len(asked)}{i}", "name": name, "args": json.loads(a or "{}")})
            except ValueError:
                broken.append({"id": f"c{len(asked)}{i}", "name": name, "args": a, "error": "x", "type": "invalid_tool_call"})
        metadata = {"finish_reason": answer.get("finish")}
        return ModelResponse(result=[AIMessage([{"type": "thinking", "thinking": answer["reasoning"]}] if "reasoning" in answer else answer.get("text") or "", tool_calls=good, invalid_tool_calls=broken, response_metadata=metadata)])

    tools = [{"type": "function", "function": t} for t in case["tools"]]
    choice = case.get("tool_choice", {})
    settings = {"max_tokens": case.get("max_tokens"), "parallel_tool_calls": not case.get("no_parallel_calls")}
    messages = [HumanMessage(case["user"])]
    if "behind_results" in case:
        messages += [AIMessage("", tool_calls=[{"id": "e", "name": case["tools"][0]["name"], "args": {}}]), ToolMessage("done", tool_call_id="e")]
    request = ModelRequest(model=GenericFakeChatModel(messages=iter(())), messages=messages, tools=tools,
                           tool_choice=choice.get("name") or choice.get("mode"), model_settings=settings)  # fmt: skip
    try:
        message = ToolmendMiddleware(stack_of(case)).wrap_model_call(request, handler).result[0]
    except toolmend.StepError as e:
        message, got["code"] = e.message, e.code
    if message is not None:
        got["calls"] = [[c["name"], json.dumps(c["args"])] for c in message.tool_calls] + [[c["name"], c["args"]] for c in message.invalid_tool_calls]
        got["text"] = message.text
    same(got | {"asks": len(asked)}, want_of(case))


@pytest.mark.anyio
@pytest.mark.parametrize("case", [c for c in CASES if "tool_choice" not in c], ids=lambda c: c["name"])
async def test_pydantic_ai(case):
    asked, got = [], {}

    def answer(messages, info):
        asked.append(messages)
        a = case["answers"][len(asked) - 1]
        parts = [ToolCallPart(n, args, f"c{len(asked)}{i}") for i, (n, args) in enumerate(a["calls"] or ())]
        return PydanticResponse(parts=([ThinkingPart(a["reasoning"])] if "reasoning" in a else []) + ([TextPart(a["text"])] if a.get("text") else []) + parts, finish_reason="error" if a.get("finish", "").endswith("CALL") else a.get("finish"), provider_details={"finish_reason": a.get("finish")})

    tools = [ToolDefinition(name=t["name"], parameters_json_schema=t["parameters"]) for t in case["tools"]]
    model = ToolmendModel(FunctionModel(answer), stack_of(case))
    settings = {"max_tokens": case.get("max_tokens"), "parallel_tool_calls": not case.get("no_parallel_calls")}
    messages = [PydanticRequest(parts=[UserPromptPart(case["user"])])]
    if "behind_results" in case:
        name = case["tools"][0]["name"]
        messages += [PydanticResponse(parts=[ToolCallPart(name, "{}", "e")]), PydanticRequest(parts=[ToolReturnPart(name, "done", "e")])]
    try:
        message = await model.request(messages, settings, ModelRequestParameters(function_tools=tools))
    except toolmend.StepError as e:
        message, got["code"] = e.message, e.code
    if message is not None:
        got["calls"] = [[p.tool_name, p.args] for p in message.parts if isinstance(p, ToolCallPart)]
        got["text"] = "".join(p.content for p in message.parts if isinstance(p, TextPart))
    same(got | {"asks": len(asked)}, want_of(case))


@pytest.fixture
def anyio_backend():
    return "asyncio"
