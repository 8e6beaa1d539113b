"""A stack: one model step, or the validation of a call."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import logging
import queue
import sys
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Mapping, Sequence

from . import _child
from ._child import Ended, Inbox, ToolmendError

try:
    from opentelemetry import trace

    _spans = trace.get_tracer("toolmend").start_as_current_span  # nothing without an SDK
except ImportError:
    _spans = None

log = logging.getLogger("toolmend")
_names = itertools.count(1)


class StepError(ToolmendError):
    """A step without a valid message.

    code is invalid_tool_call, rule_failed, budget, panic, … (docs/protocol.md). message is the last message
    of the model in the framework's own form. verdicts has the findings on each of its calls.
    """

    def __init__(self, frame: dict):
        super().__init__(frame.get("message", "toolmend: failed"))
        self.code: str = frame.get("code", "failed")
        self.verdicts: list[dict] = frame.get("verdicts") or []
        self.replies: list[dict] = frame.get("replies") or []
        self.report: dict = frame.get("report") or {}
        self.response: dict | None = frame.get("response")  # the last one, as the protocol has it
        self.message: Any = None


class InvalidToolCall(StepError):
    """The message is still invalid after the last attempt."""


class Invalid(Exception):
    """A rule raises it: the call is invalid. The model reads the text."""

    def __init__(self, message: str, pointer: str = ""):
        super().__init__(message)
        self.pointer = pointer


class Stopped(ToolmendError):
    """The answer of this model call is not needed any more."""


@dataclass
class Ask:
    """One model call of a step."""

    n: int
    keep: int  # messages of the step that stay at the start
    messages: list[dict]  # those after them
    tools: list[dict] | None  # None: the tools of the step
    settings: dict | None  # of the request: model, tool_choice, max_tokens, …; None: the settings of the step
    emit: Callable[[str, str], None] = lambda kind, text: None  # sends a piece of a stream: kind is text or reasoning


@dataclass
class Call:
    """A call that a rule checks."""

    id: str
    name: str
    arguments: str
    siblings: list[dict] = field(default_factory=list)

    @property
    def args(self) -> dict:
        return json.loads(self.arguments or "{}")


@dataclass
class Verdict:
    """What Stack.validate found. args are the arguments as they would run, with the repairs."""

    ok: bool
    args: Any
    issues: list[dict]
    changes: list[dict]
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

    def __init__(self, *, rules: Mapping[str, Any] | None = None, on_report: Callable[[dict], None] | None = None, binary: str | None = None, **options: Any):
        self.checks: list[tuple[bool, Callable]] = []
        self.options = dict(options)
        wire = []
        for tool, checks in (rules or {}).items():
            for path, check in checks.items() if isinstance(checks, Mapping) else [("", checks)]:
                wire.append({"tool": tool, "path": path})
                self.checks.append((bool(path), check))
        if wire:
            self.options["rules"] = wire
        self.on_report, self.binary = on_report, binary
        self.name = f"s{next(_names)}"

    def __call__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps call(messages, tools), which returns a message; all as OpenAI's Chat Completions has them."""
        from ._chat import wrap

        return wrap(self, call)

    def validate(self, tool: Any, arguments: Any) -> Verdict:
        """Validates the arguments (a text or a dict) of a call without a model. tool may have any common form."""
        return self._run(self._validation(tool, arguments))

    async def avalidate(self, tool: Any, arguments: Any) -> Verdict:
        return await self._arun(self._validation(tool, arguments, asyncio.get_running_loop()))

    def _validation(self, tool: Any, arguments: Any, loop: Any = None) -> _Running:
        from ._messages import text_of_arguments, tool_to_wire

        wire = tool_to_wire(tool)
        return _Running(self, {}, [wire], loop=loop, calls=[{"id": "c", "name": wire["name"], "arguments": text_of_arguments(arguments)}])

    def step(self, request: dict, tools: Sequence[dict], ask: Callable[[Ask], dict], on_event: Callable[[dict], None] | None = None) -> dict:
        """Runs a step for an adapter. ask makes one model call and returns a response; its exceptions come back from step."""
        return self._run(_Running(self, request, tools, on_event), ask)

    async def astep(self, request: dict, tools: Sequence[dict], ask: Callable[[Ask], Awaitable[dict]], on_event: Callable[[dict], None] | None = None) -> dict:
        """The same for asyncio. on_event must not block."""
        return await self._arun(_Running(self, request, tools, on_event, asyncio.get_running_loop()), ask)

    def _run(self, running: _Running, ask: Any = None) -> Any:
        with running as r:
            while True:
                frame = r.late.pop(0) if r.late else r.inbox.frames.get()
                kind = frame["type"]
                if kind == "event":
                    r.on_event(frame["event"])
                elif kind == "ask":
                    r.replying(frame, lambda: r.send(type="answer", n=frame["n"], response=ask(r.question(frame))))
                elif kind == "rule":
                    r.replying(frame, lambda: r.findings(frame, r.check(frame)))
                elif (end := r.finish(frame)) is not None:
                    return end

    async def _arun(self, running: _Running, ask: Any = None) -> Any:
        tasks: dict[int, asyncio.Task] = {}
        with running as r:
            try:
                while True:
                    frame = await r.inbox.frames.get()
                    kind = frame["type"]
                    if kind == "event":
                        r.on_event(frame["event"])
                    elif kind in ("ask", "rule"):  # a task, so that events and stops come meanwhile
                        tasks[frame["n"]] = asyncio.ensure_future(self._answer(r, frame, ask))
                    elif kind == "stop":
                        if frame["n"] in tasks:
                            tasks[frame["n"]].cancel()
                    elif (end := r.finish(frame)) is not None:
                        return end
            finally:
                for task in tasks.values():
                    task.cancel()

    async def _answer(self, r: _Running, frame: dict, ask: Any) -> None:
        try:
            if frame["type"] == "rule":
                issues = r.check(frame)
                r.findings(frame, await issues if inspect.isawaitable(issues) else issues)
            else:
                r.send(type="answer", n=frame["n"], response=await ask(r.question(frame)))
        except Exception as e:
            r.raised(frame, e)


class _Running:
    """A step or a validation that the child works on."""

    def __init__(self, stack: Stack, request: dict, tools: Sequence[dict], on_event: Any = None, loop: Any = None, calls: Any = None):
        self.stack, self.tools, self.on_event, self.loop = stack, tools, on_event, loop
        self.messages = request.get("messages") or ()
        self.frame: dict = {"stack": stack.name, "set": (tools if isinstance(tools, Tools) else Tools(tools)).name, "request": {k: v for k, v in request.items() if k != "messages"}}
        self.frame |= {"type": "step", "stream": on_event is not None} if calls is None else {"type": "validate", "calls": calls}
        self.errors: dict[int, Exception] = {}
        self.late: list[dict] = []  # frames that came while a model streamed
        self.stops: set[int] = set()
        self.ended = self.asked = self.again = False
        self.spans = contextlib.ExitStack()
        self.span: Any = None

    def __enter__(self) -> _Running:
        if _spans is not None and self.span is None:
            self.span = self.spans.enter_context(_spans(f"toolmend.{self.frame['type']}"))
        try:
            try:
                return self._start(_child.child(self.stack.binary))
            except Ended:  # just now
                return self._start(_child.child(self.stack.binary))
        except BaseException:
            self.spans.__exit__(*sys.exc_info())
            raise

    def _start(self, c: _child.Child) -> _Running:
        self.child = c
        stack, tools = self.stack.name, self.frame["set"]
        c.once(stack, lambda: {"type": "open", "stack": stack, "options": self.stack.options})
        c.once((stack, tools), lambda: {"type": "tools", "stack": stack, "set": tools, "tools": list(self.tools)}, _warn)
        self.inbox = Inbox(self.loop)
        self.id = self.frame["id"] = c.register(self.inbox)
        c.send(self.frame, c.named(self.messages, self.again))
        return self

    def __exit__(self, *error: Any) -> None:
        self.child.forget(self.id)
        if not self.ended:
            self.send(type="cancel")
        self.spans.__exit__(*error)

    def send(self, **frame: Any) -> None:
        self.child.send({"id": self.id, **frame})

    def question(self, frame: dict) -> Ask:
        self.asked = True

        def emit(kind: str, text: str) -> None:
            self.send(type="chunk", n=frame["n"], events=[{"kind": kind, "text": text}])
            while self.loop is None:  # hands out what has come back so far
                try:
                    early = self.inbox.frames.get_nowait()
                except queue.Empty:
                    break
                if early["type"] == "event":
                    self.on_event(early["event"])
                elif early["type"] == "stop":
                    self.stops.add(early["n"])
                else:
                    self.late.append(early)
            if frame["n"] in self.stops:
                raise Stopped("toolmend: the answer of this model call is not needed any more")

        return Ask(frame["n"], frame.get("keep", 0), frame.get("messages") or [], frame.get("tools"), frame.get("request"), emit)

    def check(self, frame: dict) -> Any:
        with_path, check = self.stack.checks[frame["rule"]]
        c = frame["call"]
        call = Call(c.get("id", ""), c["name"], c["arguments"], frame.get("siblings") or [])
        return check(frame["value"], call) if with_path else check(call)

    def replying(self, frame: dict, reply: Callable[[], None]) -> None:
        try:
            reply()
        except Exception as e:
            self.raised(frame, e)

    def raised(self, frame: dict, e: Exception) -> None:
        if isinstance(e, Invalid):
            return self.findings(frame, {"message": str(e), "pointer": e.pointer})
        self.errors[frame["n"]] = e
        status = getattr(e, "status_code", None)
        error = {"message": f"{type(e).__name__}: {e}"[:16000], "status": status if isinstance(status, int) else 0}
        self.send(type="answer" if frame["type"] == "ask" else "findings", n=frame["n"], error=error)

    def findings(self, frame: dict, issues: Any) -> None:
        issues = [issues] if isinstance(issues, (str, dict)) else issues or []
        self.send(type="findings", n=frame["n"], issues=[{"message": i} if isinstance(i, str) else i for i in issues])

    def finish(self, frame: dict) -> Any:
        """Returns the end of the step, or None if the step goes on."""
        kind, code = frame["type"], frame.get("code", "")
        if kind == "stop":
            return self.stops.add(frame["n"])
        if not self.again and not self.asked and (kind == "ended" and not self.child.refused or code in ("unknown_set", "unknown_message")):
            self.again = True  # nothing has happened: send it once more
            self.child.forget(self.id)
            self.child.known.pop((self.stack.name, self.frame["set"]), None)
            self.__enter__()
            return None
        self.ended = True
        if kind == "ended":
            raise (ToolmendError if self.child.refused else Ended)(frame["message"])
        if code == "unknown_stack" and self.child.known.get(self.stack.name):
            raise ToolmendError("toolmend: " + self.child.known[self.stack.name])
        self._report(frame)
        if kind == "result":
            return frame if self.frame["type"] == "step" else _verdict(frame)
        own = self.errors.get(frame.get("n", 0))
        if own is not None and code not in ("invalid_tool_call", "rule_failed"):
            raise own
        raise (InvalidToolCall if code == "invalid_tool_call" else StepError)(frame) from own

    def _report(self, frame: dict) -> None:
        for line in frame.get("log") or ():
            log.log(logging.INFO if frame.get("status") == "valid" else logging.WARNING, "%s", line)
        frame["report"] = frame.get("report") or {"status": frame.get("status", ""), "attempts": [{}], "final": 0}
        if self.span is not None:
            self.span.set_attribute("toolmend.status", frame.get("code") or frame["report"].get("status") or "")
            self.span.set_attribute("toolmend.attempts", len(frame["report"].get("attempts") or ()))
        if self.stack.on_report and self.frame["type"] == "step":
            self.stack.on_report(frame["report"])


def _verdict(frame: dict) -> Verdict:
    v = frame["verdicts"][0]
    try:
        args = json.loads(v["call"]["arguments"] or "{}")
    except ValueError:
        args = v["call"]["arguments"]
    reply = "".join(p.get("text", "") for m in frame.get("replies") or () for p in m["parts"])
    return Verdict(not v.get("issues"), args, v.get("issues") or [], v.get("changes") or [], v.get("unchecked", False), reply)


def _warn(frame: dict) -> None:
    for note in frame.get("notes") or ():
        log.warning("%s", note)


class Tools(list):
    """A tool set that does not change any more. Its name is the hash of its text."""

    @functools.cached_property
    def name(self) -> str:
        return hashlib.sha256(_child.dumps(list(self))).hexdigest()[:24]
