"""The stack as a model of pydantic-ai.

    agent = Agent(ToolmendModel("openai:gpt-5", attempts=3), tools=[...])

Output tools are tools here too, so a structured answer is repaired and re-asked like a call.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, AsyncGenerator, AsyncIterator, Mapping, cast

from pydantic_ai.messages import (
    ModelMessage, ModelRequest, ModelResponse, PartDeltaEvent, PartStartEvent, RetryPromptPart, SystemPromptPart, TextPart,
    TextPartDelta, ThinkingPart, ThinkingPartDelta, ToolCallPart, ToolReturnPart, UserPromptPart,
)  # fmt: skip
from pydantic_ai.models import ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.usage import RequestUsage

from ._child import Json
from ._messages import joined, plain, text_of_arguments
from ._stack import Ask, Stack, Step


class ToolmendModel(WrapperModel):
    """Wraps a model. Options and rules are those of toolmend.Stack. models has the models that escalate may name."""

    def __init__(self, wrapped: Any, stack: Stack | None = None, models: Mapping[str, Any] | None = None, **options: Any):
        super().__init__(wrapped)
        self.stack, self.models = stack or Stack(**options), {k: infer_model(m) for k, m in (models or {}).items()}

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        step = _Step(self, messages, model_settings, model_request_parameters)
        return cast(ModelResponse, await step.run(lambda a, _: a[0].request(*a[1:]), asyncio.get_running_loop()))

    @asynccontextmanager
    async def request_stream(self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None) -> AsyncGenerator[StreamedResponse]:
        step = _Step(self, messages, model_settings, model_request_parameters)

        async def call(own: Any, ask: Ask) -> ModelResponse:
            model, *request = own
            async with model.request_stream(*request, run_context) as inner:
                async for event in inner:
                    part: Any = event.part if isinstance(event, PartStartEvent) else event.delta if isinstance(event, PartDeltaEvent) else None
                    kind = "text" if isinstance(part, (TextPart, TextPartDelta)) else "reasoning"
                    if isinstance(part, (TextPart, ThinkingPart)) and part.content:
                        ask.emit(kind, part.content)
                    elif isinstance(part, (TextPartDelta, ThinkingPartDelta)) and part.content_delta:
                        ask.emit(kind, part.content_delta)
                return cast(ModelResponse, inner.get())

        stream = _Stream(model_request_parameters, self, step, call)
        try:
            yield stream
        finally:
            await stream.close_stream()


class _Step(Step):
    def __init__(self, model: ToolmendModel, messages: list[ModelMessage], settings: Any, parameters: ModelRequestParameters):
        self.model, self.messages, self.settings, self.parameters = model, messages, settings, parameters
        natives: list[Any] = [SystemPromptPart(p.content) for p in parameters.instruction_parts or ()]
        self.starts = [len(natives)]  # of the natives of each message, which are a response or the parts of a request
        for m in messages:
            natives += [m] if isinstance(m, ModelResponse) else m.parts
            self.starts.append(len(natives))
        choice = {"mode": "required"} if parameters.output_tools and not parameters.allow_text_output else None
        declared = (*parameters.function_tools, *parameters.output_tools)
        tools = [{"name": t.name, "description": t.description or "", "parameters": t.parameters_json_schema} for t in declared]
        own = settings or {}
        super().__init__(model.stack, natives, [to_wire(n) for n in natives], tools, model=model.model_name, tool_choice=choice, max_tokens=own.get("max_tokens"), no_parallel_calls=own.get("parallel_tool_calls") is False)

    def asked(self, ask: Ask) -> tuple[Any, list[ModelMessage], Any, ModelRequestParameters]:
        whole = max(0, bisect.bisect(self.starts, ask.keep) - 1)  # messages of the framework that were not changed
        rest = self.natives[self.starts[whole] : ask.keep] + [self.native(m) for m in ask.messages]
        messages = list(self.messages[:whole])
        for is_response, group in itertools.groupby(rest, lambda n: isinstance(n, ModelResponse)):
            messages += group if is_response else [ModelRequest(parts=list(group))]
        settings, parameters = self.settings, self.parameters
        for key, value in self.changed(ask, "max_tokens", "stop").items():
            settings = {**(settings or {}), {"stop": "stop_sequences"}.get(key, key): value}
        if ask.tools is not None:
            left = self.declared(ask, [*parameters.function_tools, *parameters.output_tools])
            function, output = ([t for t in left if t in all] for all in (parameters.function_tools, parameters.output_tools))
            parameters = replace(parameters, function_tools=function, output_tools=output)
        return self.model.models.get((ask.settings or {}).get("model", ""), self.model.wrapped), messages, settings, parameters

    def answered(self, ask: Ask, response: ModelResponse) -> Json:
        self.answers[ask.n] = response
        wire = {"message": to_wire(response), "usage": {"input": response.usage.input_tokens, "output": response.usage.output_tokens}}
        word = (response.provider_details or {}).get("finish_reason") or response.finish_reason or ""
        return wire | {"finish_reason": {"tool_call": "tool_calls"}.get(word, word)}

    def end(self, frame: Json, response: ModelResponse) -> ModelResponse:
        # With "response" it is not one answer as it came.
        return replace(response, usage=sum((a.usage for a in self.answers.values()), RequestUsage())) if "response" in frame else response

    def from_wire(self, wire: Json, own: ModelResponse | None) -> Any:
        # A part of a request, or the response with the calls of wire. What only the provider reads (signatures, ids) stays.
        if wire["role"] == "tool":
            outcome: Any = "retried" if wire.get("is_error") else "success"
            return ToolReturnPart(plain(wire.get("tool_name")), joined(wire), plain(wire.get("tool_call_id")), outcome=outcome)
        if wire["role"] != "assistant":
            return SystemPromptPart(joined(wire)) if wire["role"] == "system" else UserPromptPart(joined(wire))
        calls = iter(wire.get("tool_calls") or ())
        parts: list[Any] = []
        for p in own.parts if own else ():
            if not isinstance(p, ToolCallPart):
                parts.append(p)
            elif (c := next(calls, None)) is not None:
                changed: Any = {"tool_name": plain(c["name"]), "args": plain(c["arguments"]), "tool_call_id": plain(c.get("id"))}
                parts.append(replace(p, **changed))
        if own is None or joined(wire) != joined(to_wire(own)):
            parts = ([TextPart(joined(wire))] if joined(wire) else []) + [p for p in parts if not isinstance(p, TextPart)]
        parts += [ToolCallPart(plain(c["name"]), plain(c["arguments"]), plain(c.get("id"))) for c in calls]
        return replace(own, parts=parts) if own else ModelResponse(parts=parts)


class _Stream(StreamedResponse):
    # Text as it comes, calls once they are valid. The part of shown text that is discarded becomes empty.

    model_name: Any = None  # these four are the last response's in the end
    provider_name: Any = None
    provider_url: Any = None
    timestamp: Any = None

    def __init__(self, parameters: ModelRequestParameters, model: ToolmendModel, step: _Step, call: Any):
        super().__init__(parameters)
        self._step, self._call = step, call
        self._final: ModelResponse | None = None
        self._task: asyncio.Task[ModelResponse] | None = None
        self.model_name, self.provider_name, self.timestamp = model.model_name, model.system, datetime.now(timezone.utc)

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        events: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.create_task(self._step.run(self._call, asyncio.get_running_loop(), events.put_nowait))
        self._task.add_done_callback(lambda _: events.put_nowait(None))
        shown: dict[tuple[str, int], Any] = {}
        turn = 0
        while (event := await events.get()) is not None:
            kind = event["kind"]
            if kind == "reset":
                for at, empty in shown.items():
                    yield self._parts_manager.handle_part(vendor_part_id=at, part=empty)
                shown, turn = {}, turn + 1
            elif kind in ("text", "reasoning"):
                at, manager = (kind, turn), self._parts_manager
                shown[at] = TextPart("") if kind == "text" else ThinkingPart("")
                handle = manager.handle_text_delta if kind == "text" else manager.handle_thinking_delta
                for e in handle(vendor_part_id=at, content=event["text"]):
                    yield e
        self._final = self._task.result()
        self._usage, self.finish_reason = self._final.usage, self._final.finish_reason
        for key in ("model_name", "provider_name", "provider_url", "timestamp"):
            setattr(self, key, getattr(self._final, key) or getattr(self, key))
        for part in self._final.parts:
            if not isinstance(part, (TextPart, ThinkingPart)) or not shown:
                yield self._parts_manager.handle_part(vendor_part_id=None, part=part)

    def get(self) -> ModelResponse:
        now = super().get()
        return now if self._final is None else replace(self._final, state=now.state)

    async def close_stream(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def get_stream_cancel_errors(self) -> tuple[type[BaseException], ...]:
        return (asyncio.CancelledError,)


def to_wire(m: Any) -> Json:
    # The message for a response, or for a part of a request.
    if isinstance(m, SystemPromptPart):
        return {"role": "system", "parts": [{"text": m.content}]}
    if isinstance(m, (ToolReturnPart, RetryPromptPart)) and m.tool_name:
        said = m.model_response_str() if isinstance(m, ToolReturnPart) else m.model_response()
        failed = getattr(m, "outcome", "") != "success"
        return {"role": "tool", "parts": [{"text": said}], "tool_call_id": m.tool_call_id, "tool_name": m.tool_name, "is_error": failed}
    if not isinstance(m, ModelResponse):
        content = [m] if not isinstance(m, UserPromptPart) else [m.content] if isinstance(m.content, str) else m.content
        return {"role": "user", "parts": [{"text": c} if isinstance(c, str) else {"kind": "opaque"} for c in content]}
    parts: list[Json] = []
    calls = []
    for p in m.parts:
        if isinstance(p, ToolCallPart):
            calls.append({"id": p.tool_call_id, "name": p.tool_name, "arguments": text_of_arguments(p.args)})
        elif isinstance(p, TextPart):
            parts.append({"text": p.content})
        else:
            parts.append({"kind": "reasoning", "text": p.content} if isinstance(p, ThinkingPart) else {"kind": "opaque"})
    return {"role": "assistant", "parts": parts, **({"tool_calls": calls} if calls else {})}
