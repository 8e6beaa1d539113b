import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import toolmend

TOOL = {"name": "get", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_step_is_a_span_around_its_model_calls(how):
    exporter.clear()
    turns = ['{"x": 1}', '{"n": 1}']

    def call(messages, tools):
        with trace.get_tracer("mine").start_as_current_span("model"):
            return {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "get", "arguments": turns.pop(0)}}]}

    async def acall(messages, tools):
        return call(messages, tools)

    user = [{"role": "user", "content": "x"}]
    if how == "sync":
        toolmend.Stack()(call)(user, [TOOL])
    else:
        asyncio.run(toolmend.Stack()(acall)(user, [TOOL]))
    first, second, step = exporter.get_finished_spans()
    assert [first.name, second.name, step.name] == ["model", "model", "toolmend.step"]
    assert first.parent.span_id == second.parent.span_id == step.context.span_id
    assert dict(step.attributes) == {"toolmend.status": "valid", "toolmend.attempts": 2}


def test_an_error_is_on_the_span():
    exporter.clear()
    with pytest.raises(toolmend.InvalidToolCall):
        call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}]}
        toolmend.Stack(attempts=1)(lambda messages, tools: call)([{"role": "user", "content": "x"}], [TOOL])
    (step,) = exporter.get_finished_spans()
    assert (step.attributes["toolmend.status"], step.status.is_ok) == ("invalid_tool_call", False)


def test_a_step_that_does_not_start_ends_its_span():
    exporter.clear()
    with pytest.raises(toolmend.ToolmendError):
        toolmend.Stack(binary="no/where")(lambda messages, tools: {})([{"role": "user", "content": "x"}], [TOOL])
    assert len(exporter.get_finished_spans()) == 1 and not trace.get_current_span().get_span_context().is_valid
