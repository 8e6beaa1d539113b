"""What the adapters share."""

from __future__ import annotations

import base64
import json
from typing import Any, Awaitable, Callable

from ._stack import Ask, Stack, StepError, Tools


class Step:
    """One step: the request as the protocol has it, and the framework's own answers by their questions.

    An adapter has asked(ask), the request of one model call; answered(ask, response), which keeps an answer and
    returns it for the protocol; own(wire), the framework's message that a message is from; from_wire(wire, own); and
    end(frame), the framework's result.
    """

    def __init__(self, stack: Stack, messages: list[dict], tools: list[dict], **settings: Any):
        self.stack, self.tools, self.answers = stack, tools, {}
        self.request = {"messages": messages, **{k: v for k, v in settings.items() if v}}

    def run(self, call: Callable[[Any], Any]) -> Any:
        try:
            return self.end(self.stack.step(self.request, self.tools, lambda ask: self.answered(ask, call(self.asked(ask)))))
        except StepError as e:
            raise self.failed(e)

    async def arun(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        async def ask(ask: Ask) -> dict:
            return self.answered(ask, await call(self.asked(ask)))

        try:
            return self.end(await self.stack.astep(self.request, self.tools, ask))
        except StepError as e:
            raise self.failed(e)

    def failed(self, error: StepError) -> StepError:
        error.message = self.native(error.response["message"]) if error.response else None
        return error

    def native(self, wire: dict) -> Any:
        return self.from_wire(wire, self.own(*origin(wire)) if origin(wire) else None)

    def final(self, frame: dict) -> Any:
        """The message of a result. If its call was read in a text, the last answer has its other members."""
        wire = frame["response"]["message"]
        return self.from_wire(wire, self.own(*(origin(wire) or ("a", max(self.answers)))))

    def changed(self, ask: Ask, key: str) -> Any:
        """A setting of the request that the ask changes, else None."""
        value = (ask.settings or self.request).get(key)
        return value if value != self.request.get(key) else None


_kept: dict[tuple, tuple[Any, Tools]] = {}


def kept_tools(tools: list, convert: Callable[[Any], dict], identity: Callable[[Any], Any] = lambda tool: tool) -> Tools:
    """Converts the tools of a framework once. What identity returns stays alive, so its id is not used again."""
    objects = [identity(t) for t in tools]
    key = tuple((id(o), getattr(t, "name", "")) for o, t in zip(objects, tools))
    if key not in _kept:
        if len(_kept) > 64:
            _kept.clear()
        _kept[key] = (objects, Tools(map(convert, tools)))
    return _kept[key][1]


def text(role: str, content: Any, **more: Any) -> dict:
    """A message of one text."""
    return {"role": role, "parts": [{"text": content}] if content else [], **more}


def joined(message: dict) -> str:
    return "".join(p.get("text", "") for p in message.get("parts") or () if not p.get("kind"))


def plain(s: Any) -> str:
    """An id, a name or arguments: bytes that are not UTF-8 come as base64."""
    return base64.b64decode(s["base64"]).decode("utf-8", "replace") if isinstance(s, dict) else s or ""


def origin(message: dict) -> tuple[str, int] | None:
    """("m", i): the i-th message of the step; ("a", n): the answer to question n."""
    native = message.get("native")
    return (native["raw"][0], int(native["raw"][1:])) if native and native.get("dialect") == "host" else None


def text_of_arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps({} if value is None else value)


def tool_to_wire(tool: Any) -> dict:
    """A tool in the form of OpenAI, Anthropic, MCP or the protocol."""
    f = tool.get("function") or tool
    parameters = next((f[k] for k in ("parameters", "input_schema", "inputSchema") if f.get(k) is not None), None)
    name = f.get("name") or tool.get("type", "")
    if parameters is None and tool.get("type", "function") != "function":
        return {"name": name, "kind": "hosted"}  # the provider runs it
    wire = {"name": name, "description": f.get("description") or "", "parameters": parameters or {"type": "object"}}
    return wire | {k: tool[k] for k in ("destructive",) if k in tool}
