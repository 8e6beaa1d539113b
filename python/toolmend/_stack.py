# A stack: one model step, or the validation of a call.

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import logging
import pickle
import queue
from dataclasses import dataclass, field
from typing import Any, Callable, Coroutine, Mapping, Sequence, cast

from . import _child
from ._child import Ended, Json, ToolmendError
from ._messages import joined, parsed, text_of_arguments, tool_to_wire

try:
    from opentelemetry import trace

    _spans: Any = trace.get_tracer("toolmend").start_as_current_span  # nothing without an SDK
except ImportError:
    _spans = None

log = logging.getLogger("toolmend")
_names = itertools.count(1)
OnEvent = Callable[[Json], Any]


def drive(steps: Coroutine[Any, Any, Any]) -> Any:
    # Runs a coroutine in a thread without an event loop: what it waits for blocks.
    try:
        steps.send(None)
        while True:  # a function of the user waits
            steps.throw(TypeError("a coroutine, but the step does not run in asyncio: await it (ainvoke, an async function)"))
    except StopIteration as end:
        return end.value


class StepError(ToolmendError):
    """A step without a valid message.

    code is invalid_tool_call, rule_failed, panic, … (docs/protocol.md). message is the last message
    of the model in the framework's own form. verdicts has the findings on each of its calls.
    """

    def __init__(self, frame: Json):
        super().__init__(frame.get("message", "toolmend: failed"))
        self.code: str = frame.get("code", "failed")
        self.verdicts: list[Json] = frame.get("verdicts") or []
        self.replies: list[Json] = frame.get("replies") or []
        self.report: Json = frame.get("report") or {}
        self.response: Json | None = frame.get("response")  # the last one, as the protocol has it
        self.message: Any = None


class InvalidToolCall(StepError):
    """The message is still invalid after the last attempt."""


class Invalid(Exception):
    """A rule raises it: the call is invalid. The model reads the text."""

    def __init__(self, message: str, pointer: str = ""):
        super().__init__(message)
        self.pointer = str(pointer)  # it must become JSON


@dataclass
class Ask:
    """One model call of a step."""

    n: int
    keep: int  # messages of the step that stay at the start
    messages: list[Json]  # those after them
    tools: list[Json] | None  # None: the tools of the step
    settings: Json | None  # of the request: model, tool_choice, max_tokens, …; None: the settings of the step
    emit: Callable[[str, str], None] = lambda kind, text: None  # sends a piece of a stream: kind is text or reasoning


@dataclass
class Call:
    """A call that a rule checks."""

    id: str
    name: str
    arguments: str
    siblings: list[Json] = field(default_factory=list)

    @property
    def args(self) -> Any:
        return json.loads(self.arguments or "{}")


@dataclass
class Verdict:
    """What Stack.validate found. args are the arguments as they would run, with the repairs."""

    ok: bool
    args: Any
    issues: list[Json]
    changes: list[Json]
    unchecked: bool
    reply: str  # for the model, if the call is invalid


class Stack:
    """Validates, repairs and re-asks. It is safe for threads, tasks and forks.

    Options have the names and words of toolmend.toml: attempts, on_exhausted, repairs, strip, batch, tool, …,
    and record, answer, text_call and rule_timeout (docs/python.md).

    rules maps a tool, or "*", to a function that gets a Call, or to {path: function}, each of which gets a value
    and the Call. A function returns None, or what is wrong: a text, {"pointer", "message"}, or a list of them; or
    it raises Invalid. Another exception means that it could not decide, and ends the step.

    on_report gets the report of each step (a dict).
    """

    def __init__(self, *, rules: Mapping[str, Any] | None = None, on_report: Callable[[Json], Any] | None = None, binary: str | None = None, **options: Any):
        self.checks: list[tuple[bool, Callable[..., Any]]] = []
        wire: list[Json] = []
        for tool, checks in (rules or {}).items():
            for path, check in checks.items() if isinstance(checks, Mapping) else [("", checks)]:
                wire.append({"tool": tool, "path": path})
                self.checks.append((bool(path), check))
        self.options, self.on_report, self.binary = {**options, "rules": wire}, on_report, binary
        self.name = f"s{next(_names)}"

    def __call__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps call(messages, tools), which returns a message; all as OpenAI's Chat Completions has them."""
        from ._chat import wrap

        return wrap(self, call)

    def validate(self, tool: Any, arguments: Any) -> Verdict:
        """Validates the arguments (a text or a dict) of a call without a model. tool may have any common form."""
        return cast(Verdict, drive(self._validate(tool, arguments)))

    async def avalidate(self, tool: Any, arguments: Any) -> Verdict:
        return await self._validate(tool, arguments, asyncio.get_running_loop())

    async def _validate(self, tool: Any, arguments: Any, loop: Any = None) -> Verdict:
        wire = tool_to_wire(tool)
        call = {"id": "c", "name": wire["name"], "arguments": text_of_arguments(arguments)}
        frame = await _Running(self, {"type": "validate", "calls": [call]}, [], [wire], loop=loop).run()
        v = frame["verdicts"][0]
        reply = "".join(map(joined, frame.get("replies") or ()))
        return Verdict(not v.get("issues"), parsed(v["call"]["arguments"]), v.get("issues") or [], v.get("changes") or [], v.get("unchecked", False), reply)

    async def step(self, request: Json, tools: Sequence[Json], ask: Callable[[Ask], Any], on_event: OnEvent | None = None, loop: Any = None) -> Json:
        # Runs a step for an adapter. ask makes one model call and returns a response; its exceptions come back from step.
        #
        # With a loop it waits as a task of asyncio, and on_event must not block. Without one it is for drive.
        frame = {"type": "step", "request": {k: v for k, v in request.items() if k != "messages"}, "stream": on_event is not None}
        return await _Running(self, frame, request.get("messages") or [], tools, ask, on_event, loop).run()


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

    async def run(self, call: Callable[[Any, Ask], Any], loop: Any = None, on_event: OnEvent | None = None) -> Any:
        # Runs the step around call, for drive; with a loop for asyncio, and call may be a coroutine.

        async def ask(ask: Ask) -> Json:
            response = call(self.asked(ask), ask)
            return self.answered(ask, await response if inspect.isawaitable(response) else response)

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
        # question 1. Without a mark it is from own. A user's message with the same text stays, with its images.
        mark = wire.get("native") or {}
        if mark.get("dialect") == "host":
            kind, i = mark["raw"][0], int(mark["raw"][1:])
            own, was = (self.natives[i], self.request["messages"][i]) if kind == "m" else (self.answers[i], {})
            if wire["role"] == was.get("role") == "user" and joined(wire) == joined(was):
                return own
        return self.from_wire(wire, own)

    def declared(self, ask: Ask, own: list[Any]) -> list[Any]:
        # Those of the framework's tools that the ask has.
        names = {t["name"] for t in (self.tools if ask.tools is None else ask.tools)}
        return [t for t, w in zip(own, self.tools) if w["name"] in names]

    def changed(self, ask: Ask, *keys: str) -> Json:
        # The settings of the request that the ask changes.
        settings = self.request if ask.settings is None else ask.settings
        return {k: settings.get(k) for k in keys if settings.get(k) != self.request.get(k)}


class _Running:
    # A step or a validation that the child works on.

    def __init__(self, stack: Stack, frame: Json, messages: Sequence[Json], tools: Sequence[Json], ask: Any = None, on_event: Any = None, loop: Any = None):
        self.stack, self.messages, self.ask, self.on_event, self.loop = stack, messages, ask, on_event, loop
        try:
            self.tools = pickle.dumps(tools)  # as they are now: the caller may change its own
        except Exception:  # it has an object of a class inside a function, such as an Enum, which may still be JSON
            self.tools = pickle.dumps(json.loads(_child.encode(tools)))
        self.set = hashlib.sha256(self.tools).hexdigest()[:24]
        self.frame: Json = {"stack": stack.name, "set": self.set, "length": len(messages), **frame}
        self.frame["call_ids"] = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
        self.errors: dict[int, BaseException] = {}
        self.stops: set[int] = set()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.ended = self.asked = False
        self.tries = 0

    def start(self, *missing: str) -> None:
        # Sends the step, behind what the child does not have: the options of the stack, the tools.
        self.child = c = _child.child(self.stack.binary)
        self.missing = list(missing)
        self.frames: Any = asyncio.Queue() if self.loop else queue.SimpleQueue()
        self.id = c.register(functools.partial(self.loop.call_soon_threadsafe, self.frames.put_nowait) if self.loop else self.frames.put)
        for kind in missing:
            self.send(type=kind, stack=self.stack.name, **({"options": self.stack.options} if kind == "open" else {"set": self.set, "tools": pickle.loads(self.tools)}))
        self.send(**self.frame)

    async def run(self) -> Json:
        with _spans(f"toolmend.{self.frame['type']}") if _spans else contextlib.nullcontext() as self.span:
            self.start()
            try:
                while True:
                    frame = await self.frames.get() if self.loop else self.frames.get()
                    if frame["type"] in ("ask", "rule"):
                        self.asked = True
                        if self.loop:  # a task, so that events and stops come meanwhile
                            self.tasks[frame["n"]] = asyncio.ensure_future(self.answer(frame))
                        else:
                            await self.answer(frame)
                    elif frame["type"] == "event":
                        self.on_event(frame["event"])
                    elif frame["type"] == "load":
                        self.send(type="messages", n=frame["n"], messages=self.messages)
                    elif frame["type"] == "stop":
                        self.stops.add(frame["n"])
                        if frame["n"] in self.tasks:
                            self.tasks[frame["n"]].cancel()
                    elif end := self.finish(frame):
                        return end
            finally:
                self.child.routes.pop(self.id, None)
                if not self.ended:
                    self.send(type="cancel")
                    self.ended = True
                for task in self.tasks.values():
                    task.cancel()

    def send(self, **frame: Any) -> None:
        self.child.send({"id": self.id, **frame})

    async def answer(self, frame: Json) -> None:
        n, is_rule = frame["n"], frame["type"] == "rule"
        reply = functools.partial(self.send, type="findings" if is_rule else "answer", n=n)
        try:
            result = self.check(frame) if is_rule else self.ask(self.question(frame))
            result = await result if inspect.isawaitable(result) else result
            if is_rule:
                found = [result] if isinstance(result, (str, dict)) else result or []
                reply(issues=[{"message": i} if isinstance(i, str) else i for i in found])
            else:
                reply(response=result)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as e:  # a CancelledError too, if the host did not cancel the step
            if is_rule and isinstance(e, Invalid):
                return reply(issues=[{"message": str(e), "pointer": e.pointer}])
            if isinstance(e, asyncio.CancelledError) and (self.ended or n in self.stops):
                raise
            self.errors[n] = e
            status, text = getattr(e, "status_code", None), type(e).__name__
            with contextlib.suppress(Exception):  # it has no text
                text += f": {e}"
            reply(error={"message": text[:16000], "status": status if isinstance(status, int) else 0})

    def question(self, frame: Json) -> Ask:
        n = frame["n"]
        return Ask(
            n, frame.get("keep", 0), frame.get("messages") or [], frame.get("tools"), frame.get("request"),
            emit=lambda kind, text: self.send(type="chunk", n=n, events=[{"kind": kind, "text": text}]),
        )  # fmt: skip

    def check(self, frame: Json) -> Any:
        with_path, check = self.stack.checks[frame["rule"]]
        c = frame["call"]
        call = Call(c.get("id", ""), c["name"], c["arguments"], frame.get("siblings") or [])
        return check(frame["value"], call) if with_path else check(call)

    def finish(self, frame: Json) -> Json | None:
        # Returns the end of the step, or None if the step begins anew.
        ended, code = frame["type"] == "ended", frame.get("code", "")
        if self.missing and not ended and frame["type"] == "result":
            self.missing.pop()
            for note in frame.get("notes") or ():
                log.warning("%s", note)
            return None
        if not self.asked and self.tries < 3 and (ended and not self.child.refused or code.startswith("unknown")):
            self.tries += 1  # nothing has happened: send it once more
            self.child.routes.pop(self.id, None)
            self.start(*{"unknown_stack": ("open", "tools"), "unknown_set": ("tools",)}.get(code, ()))
            return None
        self.ended = True
        if ended:
            raise (ToolmendError if self.child.refused else Ended)(frame["message"])
        if code == "options":
            raise ToolmendError("toolmend: " + frame["message"])
        for line in frame.get("log") or ():
            log.log(logging.INFO if frame.get("status") == "valid" else logging.WARNING, "%s", line)
        report = frame["report"] = frame.get("report") or {"status": frame.get("status", ""), "attempts": [{}], "final": 0}
        if self.span:
            self.span.set_attribute("toolmend.status", code or report.get("status") or "")
            self.span.set_attribute("toolmend.attempts", len(report.get("attempts") or ()))
        if self.stack.on_report and self.frame["type"] == "step":
            self.stack.on_report(report)
        if frame["type"] == "result":
            return frame
        own = self.errors.get(frame.get("n", 0))
        if own is not None and code not in ("invalid_tool_call", "rule_failed"):
            raise own
        raise (InvalidToolCall if code == "invalid_tool_call" else StepError)(frame) from own
