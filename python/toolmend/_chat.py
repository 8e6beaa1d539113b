# The stack around a function call(messages, tools) with the messages of OpenAI's Chat Completions.

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, Callable

from ._child import Json
from ._messages import joined, plain, text_of_arguments, tool_to_wire
from ._stack import Ask, Stack, Step, drive


class Message(Json):
    """The assistant message, with the report of the step and the usage of all its model calls."""

    report: Json
    usage: Json


def wrap(stack: Stack, call: Callable[..., Any]) -> Callable[..., Any]:
    def run(loop: Any, messages: list[Json], tools: Any = (), **settings: Any) -> Any:
        return _Step(stack, call, messages, tools, settings).run(lambda a, _: call(a[0], a[1], **a[2]), loop)

    if inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None)):

        @functools.wraps(call)
        async def acalled(*args: Any, **settings: Any) -> Any:
            return await run(asyncio.get_running_loop(), *args, **settings)

        return acalled

    @functools.wraps(call)
    def called(*args: Any, **settings: Any) -> Any:
        return drive(run(None, *args, **settings))

    return called


class _Step(Step):
    def __init__(self, stack: Stack, call: Callable[..., Any], messages: list[Json], tools: Any, settings: Json):
        self.call, self.own_tools, self.settings = call, list(tools or ()), settings
        self.limit = "max_tokens" if settings.get("max_completion_tokens") is None else "max_completion_tokens"
        stop, choice, natives = settings.get("stop"), settings.get("tool_choice"), [_plain(m) for m in messages]
        super().__init__(
            stack, natives, [to_wire(m) for m in natives], [tool_to_wire(t) for t in self.own_tools],
            model=settings.get("model"), max_tokens=settings.get(self.limit), stop=[stop] if isinstance(stop, str) else stop,
            tool_choice=choice_to_wire(choice), allowed_tools=allowed_tools(choice), no_parallel_calls=settings.get("parallel_tool_calls") is False,
        )  # fmt: skip

    def asked(self, ask: Ask) -> tuple[list[Json], list[Any], Json]:
        messages = self.natives[: ask.keep] + [self.native(m) for m in ask.messages]
        settings = dict(self.settings)
        for key, value in self.changed(ask, "model", "max_tokens", "stop", "tool_choice").items():
            key = self.limit if key == "max_tokens" else key
            if key in settings or _accepts(self.call, key):
                settings[key] = choice_from_wire(value) if key == "tool_choice" else value
        return messages, self.declared(ask, self.own_tools), settings

    def answered(self, ask: Ask, response: Any) -> Json:
        response = _plain(response)
        choice = response["choices"][0] if "choices" in response else {"message": response, "finish_reason": response.get("finish_reason")}
        usage = response.get("usage") or {}
        self.answers[ask.n] = message = choice["message"]
        counts = {"input": usage.get("prompt_tokens") or 0, "output": usage.get("completion_tokens") or 0}
        return {"message": to_wire(message), "finish_reason": choice.get("finish_reason") or "", "usage": counts}

    def end(self, frame: Json, message: Json) -> Message:
        result = Message(message)
        result.report, result.usage = frame["report"], (frame.get("response") or {}).get("usage") or {}
        return result

    def from_wire(self, wire: Json, own: Json | None) -> Json:
        # The message with the text and the calls of wire. Its other members stay.
        own, said = own or {}, joined(wire)
        message = {**own, "role": own.get("role", wire["role"])}
        if not own or said != joined(to_wire(own)):
            message["content"] = said or None if wire["role"] == "assistant" else said
        if wire["role"] == "tool":
            message["tool_call_id"] = plain(wire.get("tool_call_id"))
        calls = []
        for i, c in enumerate(wire.get("tool_calls") or ()):
            kind, body = ("custom", "input") if c.get("kind") == "custom" else ("function", "arguments")
            was: Json = next((w for w in (own.get("tool_calls") or [])[i : i + 1] if kind in w), {"type": kind})
            calls.append({**was, "id": plain(c.get("id")), kind: {**was.get(kind, {}), "name": plain(c["name"]), body: plain(c["arguments"])}})
        message.pop("tool_calls", None)
        return {**message, "tool_calls": calls} if calls else message


def _accepts(call: Callable[..., Any], key: str) -> bool:
    parameters = inspect.signature(call).parameters
    return key in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _plain(value: Any) -> Json:
    # A dict of an object of an SDK.
    return value if isinstance(value, dict) else dict(value.model_dump(exclude_none=True))


def to_wire(m: Json) -> Json:
    content = m.get("content") or []
    parts = [{"text": content}] if isinstance(content, str) else [{"text": p["text"]} if p.get("type") == "text" else {"kind": "opaque"} for p in content]
    if m["role"] == "tool":
        return {"role": "tool", "parts": parts, "tool_call_id": m.get("tool_call_id", ""), "tool_name": m.get("name") or ""}
    wire: Json = {"role": "system" if m["role"] == "developer" else m["role"], "parts": parts}
    if m.get("reasoning_content"):
        parts.insert(0, {"kind": "reasoning", "text": m["reasoning_content"]})
    if calls := m.get("tool_calls"):
        wire["tool_calls"] = [_call_to_wire(c) for c in calls]
    return wire


def _call_to_wire(c: Json) -> Json:
    if c.get("type") == "custom":
        return {"id": c.get("id") or "", "name": c["custom"]["name"], "arguments": c["custom"].get("input") or "", "kind": "custom"}
    return {"id": c.get("id") or "", "name": c["function"]["name"], "arguments": text_of_arguments(c["function"].get("arguments"))}


def choice_to_wire(choice: Any) -> Json | None:
    modes = {"none": "none", "required": "required", "any": "required", True: "required"}
    if isinstance(choice, dict):
        body = choice.get("function") or choice.get("custom") or choice.get("allowed_tools") or choice
        mode = modes.get(body.get("mode") or choice.get("type"))
        return {"name": body["name"]} if body.get("name") else {"mode": mode} if mode else None
    return None if choice in (None, "auto") else {"mode": modes[choice]} if choice in modes else {"name": choice}


def allowed_tools(choice: Any) -> list[str] | None:
    # The names of tool_choice = {"type": "allowed_tools", …}.
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return None
    allowed = choice.get("allowed_tools") or choice  # flat in Responses
    return [(t.get("function") or t.get("custom") or t).get("name", "") for t in allowed.get("tools") or ()]


def choice_from_wire(choice: Any) -> Any:
    choice = choice or {}
    return {"type": "function", "function": {"name": choice["name"]}} if choice.get("name") else choice.get("mode") or "auto"
