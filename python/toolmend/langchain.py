"""The stack as a middleware of LangChain 1.x agents.

    agent = create_agent(model, tools, middleware=[ToolmendMiddleware(attempts=3)])

LangChain has parsed the arguments before a middleware sees them, so a duplicate key is gone. Arguments that are not
JSON arrive as text (invalid_tool_calls) and are repaired. Tokens that the model streams reach callbacks as they come,
also those of an attempt that is re-asked.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Awaitable, Callable, Mapping, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from ._chat import choice_to_wire
from ._child import Json
from ._messages import joined, parsed, plain, tool_to_wire
from ._stack import Ask, Stack, Step, drive

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
_REASONING = ("reasoning", "thinking", "redacted_thinking")
_CALLS = ("tool_use", "tool_call", "function_call", "invalid_tool_call")


class ToolmendMiddleware(AgentMiddleware):
    """Options and rules are those of toolmend.Stack. models has the models that escalate may name."""

    def __init__(self, stack: Stack | None = None, models: Mapping[str, Any] | None = None, **options: Any):
        super().__init__()
        self.stack, self.models = stack or Stack(**options), models or {}

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        return cast(ModelResponse, drive(_Step(self, request).run(lambda own, _: handler(own))))

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]) -> ModelResponse:
        return cast(ModelResponse, await _Step(self, request).run(lambda own, _: handler(own), asyncio.get_running_loop()))


class _Step(Step):
    def __init__(self, middleware: ToolmendMiddleware, request: ModelRequest):
        self.original, self.models, self.responses = request, middleware.models, dict[int, ModelResponse]()
        natives = ([request.system_message] if request.system_message else []) + list(request.messages)
        settings = request.model_settings or {}
        tools = [tool_to_wire(t if isinstance(t, dict) else convert_to_openai_tool(t)) for t in request.tools]
        if isinstance(request.response_format, ToolStrategy):  # the handler declares these itself
            tools += [{"name": s.name, "description": s.description or "", "parameters": s.json_schema} for s in request.response_format.schema_specs]
        name = str(getattr(request.model, "model_name", None) or getattr(request.model, "model", None) or request.model._llm_type)
        super().__init__(middleware.stack, natives, [to_wire(m) for m in natives], tools, model=name, tool_choice=choice_to_wire(request.tool_choice),
                         max_tokens=settings.get("max_tokens"), no_parallel_calls=settings.get("parallel_tool_calls") is False)  # fmt: skip

    def asked(self, ask: Ask) -> ModelRequest:
        messages = self.natives[: ask.keep] + [self.native(m) for m in ask.messages]
        system = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
        override: dict[str, Any] = {"messages": messages[1:] if system else messages, "system_message": system}
        if ask.tools is not None:
            override["tools"] = self.declared(ask, self.original.tools)
        if other := self.models.get((ask.settings or {}).get("model", "")):
            override["model"] = other
        if choice := self.changed(ask, "tool_choice").get("tool_choice"):
            override["tool_choice"] = choice.get("name") or choice.get("mode")
        if settings := self.changed(ask, "max_tokens", "stop"):
            override["model_settings"] = {**(self.original.model_settings or {}), **settings}
        return self.original.override(**override)

    def answered(self, ask: Ask, response: Any) -> Json:
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        message = next((m for m in reversed(response.result) if isinstance(m, AIMessage)), None)
        if message is None or response.structured_response is not None:
            message = AIMessage("structured")  # nothing to validate: the framework has parsed the answer
        self.responses[ask.n], self.answers[ask.n] = response, message
        usage, metadata = dict(message.usage_metadata or {}), message.response_metadata or {}
        wire: Json = {"message": to_wire(message), "usage": {"input": usage.get("input_tokens", 0), "output": usage.get("output_tokens", 0)}}
        wire["finish_reason"] = str(metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason") or "")
        return wire

    def end(self, frame: Json, message: AIMessage) -> ModelResponse:
        response = self.responses.get(frame.get("n", 0)) or ModelResponse(result=[])
        if "response" not in frame:
            return response
        usage = frame["response"].get("usage") or {}  # of all attempts
        if message.usage_metadata:
            i, o = usage.get("input", 0), usage.get("output", 0)
            message = message.model_copy(update={"usage_metadata": {**message.usage_metadata, "input_tokens": i, "output_tokens": o, "total_tokens": i + o}})
        result = [message if isinstance(m, AIMessage) else m for m in response.result] or [message]
        return ModelResponse(result=result, structured_response=response.structured_response)

    def from_wire(self, wire: Json, own: AnyMessage | None) -> AnyMessage:
        said, role = joined(wire), wire["role"]
        if role == "tool":
            status = "error" if wire.get("is_error") else "success"
            return ToolMessage(said, tool_call_id=plain(wire.get("tool_call_id")), name=plain(wire.get("tool_name")), status=status)
        if role != "assistant":
            return SystemMessage(said) if role == "system" else HumanMessage(said)
        calls, broken = [], []
        for c in wire.get("tool_calls") or ():
            one = {"id": plain(c.get("id")), "name": plain(c["name"])}
            args = parsed(plain(c["arguments"]))
            if isinstance(args, dict):
                calls.append({"type": "tool_call", "args": args, **one})
            else:
                broken.append({"type": "invalid_tool_call", "args": plain(c["arguments"]), "error": "not a JSON object", **one})
        if not isinstance(own, AIMessage):
            return AIMessage(said, tool_calls=calls, invalid_tool_calls=broken)
        content = own.content
        if not isinstance(content, str):  # providers keep a copy of the calls in their content
            copies = any(isinstance(b, dict) and b.get("type") == "tool_use" for b in content)
            content = [b for b in content if isinstance(b, str) or b.get("type") not in _CALLS]
            content += [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]} for c in calls if copies]
        elif said != joined(to_wire(own)):
            content = said
        more = {k: v for k, v in own.additional_kwargs.items() if k not in ("tool_calls", "function_call")}
        return own.model_copy(update={"content": content, "tool_calls": calls, "invalid_tool_calls": broken, "additional_kwargs": more})


def to_wire(m: AnyMessage) -> Json:
    wire: Json = {"role": _ROLES.get(m.type, "user"), "parts": []}
    for block in [m.content] if isinstance(m.content, str) else m.content:
        if isinstance(block, str) or block.get("type") == "text":
            if said := block if isinstance(block, str) else block.get("text"):
                wire["parts"].append({"text": said})
        elif block.get("type") not in _CALLS:
            wire["parts"].append({"kind": "reasoning" if block.get("type") in _REASONING else "opaque"})  # only the provider reads it
    if isinstance(m, AIMessage) and (m.tool_calls or m.invalid_tool_calls):
        calls = [(c, json.dumps(c["args"])) for c in m.tool_calls] + [(c, c["args"] or "") for c in m.invalid_tool_calls]
        wire["tool_calls"] = [{"id": c["id"] or "", "name": c["name"] or "", "arguments": arguments} for c, arguments in calls]
    if isinstance(m, ToolMessage):
        wire |= {"tool_call_id": m.tool_call_id, "tool_name": m.name or "", "is_error": m.status == "error"}
    return wire
