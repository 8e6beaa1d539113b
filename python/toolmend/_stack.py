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
from typing import Any, Callable, Coroutine, Mapping, Sequence, TypeVar

from . import _child
from ._child import Ended, Json, ToolmendError

try:
    from opentelemetry import trace

    _spans: Any = trace.get_tracer("toolmend").start_as_current_span  # nothing without an SDK
except ImportError:
    _spans = None

log = logging.getLogger("toolmend")
_names = itertools.count(1)
OnEvent = Callable[[Json], Any]
T = TypeVar("T")


def drive(steps: Coroutine[Any, Any, T]) -> T:
    # Runs a coroutine in a thread without an event loop: what it waits for blocks.
    try:
        steps.send(None)
        while True:  # a function of the user waits
            steps.throw(TypeError("a coroutine, but the step does not run in asyncio: await it (ainvoke, an async function)"))
    except StopIteration as end:
        result: T = end.value
        return result


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


class Stopped(ToolmendError):
    """The answer of this model call is not needed any more."""


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
        return drive(self._validate(tool, arguments))

    async def avalidate(self, tool: Any, arguments: Any) -> Verdict:
        return await self._validate(tool, arguments, asyncio.get_running_loop())

    async def _validate(self, tool: Any, arguments: Any, loop: Any = None) -> Verdict:
        from ._messages import text_of_arguments, tool_to_wire

        wire = tool_to_wire(tool)
        call = {"id": "c", "name": wire["name"], "arguments": text_of_arguments(arguments)}
        frame = await _Running(self, {"type": "validate", "calls": [call]}, [], [wire], loop=loop).run()
        v = frame["verdicts"][0]
        try:
            args = json.loads(v["call"]["arguments"] or "{}")
        except ValueError:
            args = v["call"]["arguments"]
        reply = "".join(p.get("text", "") for m in frame.get("replies") or () for p in m["parts"])
        return Verdict(not v.get("issues"), args, v.get("issues") or [], v.get("changes") or [], v.get("unchecked", False), reply)

    async def step(self, request: Json, tools: Sequence[Json], ask: Callable[[Ask], Any], on_event: OnEvent | None = None, loop: Any = None) -> Json:
        # Runs a step for an adapter. ask makes one model call and returns a response; its exceptions come back from step.
        #
        # With a loop it waits as a task of asyncio, and on_event must not block. Without one it is for drive.
        rest = {k: v for k, v in request.items() if k != "messages"}
        frame = {"type": "step", "request": rest, "stream": on_event is not None}
        return await _Running(self, frame, request.get("messages") or [], tools, ask, on_event, loop).run()


class _Running:
    # A step or a validation that the child works on.

    def __init__(self, stack: Stack, frame: Json, messages: Sequence[Json], tools: Sequence[Json], ask: Any = None, on_event: Any = None, loop: Any = None):
        self.stack, self.messages, self.ask, self.on_event, self.loop = stack, messages, ask, on_event, loop
        self.tools = pickle.dumps(tools)  # as they are now: the caller may change its own
        self.set = hashlib.sha256(self.tools).hexdigest()[:24]
        ids = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
        self.frame: Json = {"stack": stack.name, "set": self.set, "length": len(messages), "call_ids": ids, **frame}
        self.errors: dict[int, BaseException] = {}
        self.late: list[Json] = []  # frames that came while a model streamed
        self.stops: set[int] = set()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.ended = self.asked = False
        self.tries = 0
        self.span: Any = None

    def start(self, *missing: str) -> None:
        # Sends the step, behind what the child does not have: the options of the stack, the tools.
        self.child = c = _child.child(self.stack.binary)
        self.missing = list(missing)
        if self.loop is None:
            self.frames: Any = queue.SimpleQueue()
            self.id = c.register(self.frames.put)
        else:
            self.frames = asyncio.Queue()
            self.id = c.register(functools.partial(self.loop.call_soon_threadsafe, self.frames.put_nowait))
        for kind in missing:
            self.send(type=kind, stack=self.stack.name, **({"options": self.stack.options} if kind == "open" else {"set": self.set, "tools": pickle.loads(self.tools)}))
        self.send(**self.frame)

    async def run(self) -> Json:
        with _spans(f"toolmend.{self.frame['type']}") if _spans else contextlib.nullcontext() as self.span:
            try:
                self.start()
            except Ended:  # just now
                self.start()
            try:
                while True:
                    frame = self.late.pop(0) if self.late else await self.frames.get() if self.loop else self.frames.get()
                    if frame["type"] in ("ask", "rule"):
                        answer = self.answer(frame)
                        if self.loop is None:
                            await answer
                        else:  # a task, so that events and stops come meanwhile
                            self.tasks[frame["n"]] = asyncio.ensure_future(answer)
                    elif not self.meanwhile(frame) and (end := self.finish(frame)):
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

    def meanwhile(self, frame: Json) -> bool:
        # Carries out a frame that comes while the model works. It returns False for any other.
        if frame["type"] == "event":
            self.on_event(frame["event"])
        elif frame["type"] == "load":
            self.send(type="messages", n=frame["n"], messages=self.messages)
        elif frame["type"] == "stop":
            self.stops.add(frame["n"])
            if frame["n"] in self.tasks:
                self.tasks[frame["n"]].cancel()
        else:
            return False
        return True

    async def answer(self, frame: Json) -> None:
        n = frame["n"]
        try:
            result = self.check(frame) if frame["type"] == "rule" else self.ask(self.question(frame))
            result = await result if inspect.isawaitable(result) else result
            if frame["type"] == "rule":
                self.findings(n, result)
            else:
                self.send(type="answer", n=n, response=result)
        except Invalid as e:
            self.findings(n, {"message": str(e), "pointer": e.pointer})
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as e:  # a CancelledError too, if the host did not cancel the step
            if isinstance(e, asyncio.CancelledError) and (self.ended or n in self.stops):
                raise
            self.errors[n] = e
            status = getattr(e, "status_code", None)
            error = {"message": f"{type(e).__name__}: {e}"[:16000], "status": status if isinstance(status, int) else 0}
            self.send(type="answer" if frame["type"] == "ask" else "findings", n=n, error=error)

    def findings(self, n: int, issues: Any) -> None:
        issues = [issues] if isinstance(issues, (str, dict)) else issues or []
        self.send(type="findings", n=n, issues=[{"message": i} if isinstance(i, str) else i for i in issues])

    def question(self, frame: Json) -> Ask:
        self.asked = True

        def emit(kind: str, text: str) -> None:
            self.send(type="chunk", n=frame["n"], events=[{"kind": kind, "text": text}])
            while self.loop is None and not self.frames.empty():  # hands out what has come back so far
                if not self.meanwhile(early := self.frames.get()):
                    self.late.append(early)
            if frame["n"] in self.stops:
                raise Stopped("toolmend: the answer of this model call is not needed any more")

        return Ask(frame["n"], frame.get("keep", 0), frame.get("messages") or [], frame.get("tools"), frame.get("request"), emit)

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
        self.report(frame)
        if frame["type"] == "result":
            return frame
        own = self.errors.get(frame.get("n", 0))
        if own is not None and code not in ("invalid_tool_call", "rule_failed"):
            raise own
        raise (InvalidToolCall if code == "invalid_tool_call" else StepError)(frame) from own

    def report(self, frame: Json) -> None:
        for line in frame.get("log") or ():
            log.log(logging.INFO if frame.get("status") == "valid" else logging.WARNING, "%s", line)
        frame["report"] = frame.get("report") or {"status": frame.get("status", ""), "attempts": [{}], "final": 0}
        if self.span:
            self.span.set_attribute("toolmend.status", frame.get("code") or frame["report"].get("status") or "")
            self.span.set_attribute("toolmend.attempts", len(frame["report"].get("attempts") or ()))
        if self.stack.on_report and self.frame["type"] == "step":
            self.stack.on_report(frame["report"])
