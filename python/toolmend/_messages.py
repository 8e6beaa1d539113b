# What the adapters share.

from __future__ import annotations

import base64
import inspect
import json
from typing import Any, Callable

from ._child import Json
from ._stack import Ask, OnEvent, Stack, StepError


class Step:
    # One step: the request as the protocol has it, and the framework's own answers by their questions.
    #
    # natives has the framework's object for each message. An adapter has asked(ask), the request of one model call;
    # answered(ask, response), which keeps the framework's message in answers and returns the answer for the protocol;
    # from_wire(wire, own), the framework's message for one that is from own; and end(frame, message), its result.

    asked: Callable[[Ask], Any]
    answered: Callable[[Ask, Any], Json]
    from_wire: Callable[[Json, Any], Any]
    end: Callable[[Json, Any], Any]

    def __init__(self, stack: Stack, natives: list[Any], messages: list[Json], tools: list[Json], **settings: Any):
        self.stack, self.natives, self.tools, self.answers = stack, natives, tools, dict[int, Any]()
        self.request = {"messages": messages, **{k: v for k, v in settings.items() if v or k == "allowed_tools" and v == []}}

    async def run(self, call: Callable[[Any], Any], loop: Any = None) -> Any:
        # Runs the step around call, for drive; with a loop for asyncio, and call may be a coroutine.

        async def ask(ask: Ask) -> Json:
            response = call(self.asked(ask))
            return self.answered(ask, await response if inspect.isawaitable(response) else response)

        return await self.through(ask, loop)

    async def through(self, ask: Callable[[Ask], Any], loop: Any = None, on_event: OnEvent | None = None) -> Any:
        try:
            frame = await self.stack.step(self.request, self.tools, ask, on_event, loop)
        except StepError as e:
            e.message = self.native(e.response["message"]) if e.response else None
            raise
        if n := frame.get("n"):
            return self.end(frame, self.answers[n])
        # If the call was read in a text, the last answer has its other members.
        return self.end(frame, self.native(frame["response"]["message"], self.answers[max(self.answers)]))

    def native(self, wire: Json, own: Any = None) -> Any:
        # The framework's message. The mark of a message tells what it is from: m2 is message 2 of the step, a1 the answer to
        # question 1. Without a mark it is from own.
        mark = wire.get("native") or {}
        if mark.get("dialect") == "host":
            own = (self.natives if mark["raw"][0] == "m" else self.answers)[int(mark["raw"][1:])]
        return self.from_wire(wire, own)

    def declared(self, ask: Ask, own: list[Any]) -> list[Any]:
        # Those of the framework's tools that the ask has.
        names = {t["name"] for t in (self.tools if ask.tools is None else ask.tools)}
        return [t for t, w in zip(own, self.tools) if w["name"] in names]

    def changed(self, ask: Ask, *keys: str) -> Json:
        # The settings of the request that the ask changes.
        settings = self.request if ask.settings is None else ask.settings
        return {k: settings.get(k) for k in keys if settings.get(k) != self.request.get(k)}


def text(role: str, content: Any, **more: Any) -> Json:
    # A message of one text.
    return {"role": role, "parts": [{"text": content}] if content else [], **more}


def joined(message: Json) -> str:
    return "".join(p.get("text", "") for p in message.get("parts") or () if not p.get("kind"))


def plain(s: Any) -> str:
    # An id, a name or arguments: bytes that are not UTF-8 come as base64.
    return base64.b64decode(s["base64"]).decode("utf-8", "replace") if isinstance(s, dict) else s or ""


def text_of_arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps({} if value is None else value)


def tool_to_wire(tool: Any) -> Json:
    # A tool in the form of OpenAI, Anthropic, MCP or the protocol.
    f = tool.get("function") or tool.get("custom") or tool
    parameters = next((f[k] for k in ("parameters", "input_schema", "inputSchema") if f.get(k) is not None), None)
    name = f.get("name") or tool.get("type", "")
    if parameters is None and tool.get("type", "function") != "function":
        return {"name": name, "kind": "custom" if tool["type"] == "custom" else "hosted"}  # free text; or the provider runs it
    wire = {"name": name, "description": f.get("description") or "", "parameters": parameters or {"type": "object"}}
    return wire | {k: tool[k] for k in ("destructive",) if k in tool}
