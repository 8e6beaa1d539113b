# What the adapters share.

from __future__ import annotations

import base64
import inspect
import json
from typing import Any, Callable, Iterable

from ._child import Json
from ._stack import Ask, OnEvent, Stack, StepError, Tools


class Step:
    """One step: the request as the protocol has it, and the framework's own answers by their questions.

    An adapter has asked(ask), the request of one model call; answered(ask, response), which keeps an answer and
    returns it for the protocol; own(kind, i), the framework's message that a message is from; from_wire(wire, own); and
    end(frame), the framework's result.
    """

    asked: Callable[[Ask], Any]
    answered: Callable[[Ask, Any], Json]
    own: Callable[[str, int], Any]
    from_wire: Callable[[Json, Any], Any]
    end: Callable[[Json], Any]

    def __init__(self, stack: Stack, messages: list[Json], tools: list[Json], **settings: Any):
        self.stack, self.tools, self.answers = stack, tools, dict[int, Any]()
        self.request = {"messages": messages, **{k: v for k, v in settings.items() if v or k == "allowed_tools" and v == []}}

    async def run(self, call: Callable[[Any], Any], loop: Any = None) -> Any:
        # Runs the step around call, for drive; with a loop for asyncio, and call may be a coroutine.

        async def ask(ask: Ask) -> Json:
            response = call(self.asked(ask))
            return self.answered(ask, await response if inspect.isawaitable(response) else response)

        return await self.through(ask, loop)

    async def through(self, ask: Callable[[Ask], Any], loop: Any = None, on_event: OnEvent | None = None) -> Any:
        try:
            return self.end(await self.stack.step(self.request, self.tools, ask, on_event, loop))
        except StepError as e:
            e.message = self.native(e.response["message"]) if e.response else None
            raise

    def native(self, wire: Json) -> Any:
        place = origin(wire)
        return self.from_wire(wire, self.own(*place) if place else None)

    def final(self, frame: Json) -> Any:
        # The message of a result. If its call was read in a text, the last answer has its other members.
        wire = frame["response"]["message"]
        return self.from_wire(wire, self.own(*(origin(wire) or ("a", max(self.answers)))))

    def changed(self, ask: Ask, *keys: str) -> Json:
        # The settings of the request that the ask changes.
        settings = self.request if ask.settings is None else ask.settings
        return {k: settings.get(k) for k in keys if settings.get(k) != self.request.get(k)}


_kept: dict[Any, tuple[Any, Tools]] = {}


def kept_tools(key: Any, alive: Any, convert: Callable[[], Iterable[Json]]) -> Tools:
    # Converts the tools of a framework once for each key. alive stays alive, so an id in the key is not used again.
    kept = _kept.get(key)
    if kept is None:
        if len(_kept) > 64:
            _kept.clear()
        kept = _kept[key] = (alive, Tools(convert()))
    return kept[1]  # another thread may have cleared _kept


def text(role: str, content: Any, **more: Any) -> Json:
    # A message of one text.
    return {"role": role, "parts": [{"text": content}] if content else [], **more}


def joined(message: Json) -> str:
    return "".join(p.get("text", "") for p in message.get("parts") or () if not p.get("kind"))


def plain(s: Any) -> str:
    # An id, a name or arguments: bytes that are not UTF-8 come as base64.
    return base64.b64decode(s["base64"]).decode("utf-8", "replace") if isinstance(s, dict) else s or ""


def origin(message: Json) -> tuple[str, int] | None:
    # ("m", i): the i-th message of the step; ("a", n): the answer to question n.
    native = message.get("native")
    return (native["raw"][0], int(native["raw"][1:])) if native and native.get("dialect") == "host" else None


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
