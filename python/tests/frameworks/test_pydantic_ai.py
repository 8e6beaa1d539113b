import asyncio
import json

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

import toolmend
from toolmend.pydantic_ai import ToolmendModel, _Step


class Scripted:
    def __init__(self, *turns):
        self.turns, self.seen = list(turns), []

    def __call__(self, messages, info):
        self.seen.append(messages)
        return ModelResponse(parts=self.turns.pop(0))

    async def stream(self, messages, info):
        self.seen.append(messages)
        for i, p in enumerate(self.turns.pop(0)):
            if isinstance(p, TextPart):
                for word in p.content.split():
                    yield word + " "
            else:
                yield {i: DeltaToolCall(p.tool_name, p.args if isinstance(p.args, str) else json.dumps(p.args), tool_call_id=p.tool_call_id)}


def call(args, n=0):
    return ToolCallPart("book", args, f"c{n}")


def agent_of(script, stack=None, **options):
    booked = []
    agent = Agent(ToolmendModel(FunctionModel(script, stream_function=script.stream), stack, **options), instructions="Be brief.", **({"retries": 0}))

    @agent.tool_plain
    def book(city: str, nights: int = 1) -> str:
        """Books a hotel."""
        booked.append((city, nights))
        return f"booked {city}"

    return agent, booked


def test_repaired():
    script = Scripted([call('{"city": "Oslo", "nights": "3"')], [TextPart("Done.")])
    agent, booked = agent_of(script)
    assert agent.run_sync("a hotel").output == "Done." and booked == [("Oslo", 3)] and len(script.seen) == 2


def test_asked_again_with_siblings():
    script = Scripted([ThinkingPart("hm", signature="s"), call('{"nights": 2}'), call('{"city": "Rome"}', 1)],
                      [call('{"city": "Oslo"}'), call('{"city": "Rome"}', 1)], [TextPart("Done.")])
    agent, booked = agent_of(script)
    result = agent.run_sync("a hotel")
    assert sorted(booked) == [("Oslo", 1), ("Rome", 1)] and len(result.all_messages()) == 4
    failed, replies = script.seen[1][-2:]
    assert failed.parts[0].signature == "s"
    assert [type(p) for p in replies.parts] == [ToolReturnPart] * 2
    assert "required property is missing" in replies.parts[0].content and "not executed" in replies.parts[1].content


def test_a_schema_that_prepare_changes_in_place():
    kinds, got = ["integer"] * 2 + ["string"] * 2, []

    async def prepare(ctx, definition):
        definition.parameters_json_schema["properties"]["n"] = {"type": kinds.pop(0)}
        return definition

    one = [ToolCallPart("get", '{"n": "1"}', "c")]
    agent = Agent(ToolmendModel(FunctionModel(Scripted(one, [TextPart("Done.")], one, [TextPart("Done.")]))))

    @agent.tool_plain(prepare=prepare)
    def get(n: object) -> str:
        got.append(n)
        return "ok"

    for _ in range(2):
        agent.run_sync("a number")
    assert got == [1, "1"] and not kinds


def test_a_part_that_is_kept_is_the_users_own():
    # A layer that changes the second part of a request leaves the first one, with its image.
    image = UserPromptPart(["what is this?", BinaryContent(b"hi", media_type="image/png")])
    request = ModelRequest(parts=[image, UserPromptPart("and this?")])
    step = _Step(ToolmendModel(FunctionModel(Scripted())), [request], None, ModelRequestParameters())
    changed = {"role": "user", "parts": [{"text": "and that?"}]}
    _, (again,), *_ = step.asked(toolmend.Ask(1, 1, [changed], None, None))
    assert again.parts[0] is image and again.parts[1].content == "and that?"
    _, (again,), *_ = step.asked(toolmend.Ask(1, 2, [], None, None))
    assert again is request


def test_an_image_stays_where_the_calls_are_text():
    script = Scripted([TextPart("A cat.")])
    agent, _ = agent_of(script, text_call=True)
    image = BinaryContent(b"hi", media_type="image/png")
    agent.run_sync(["what is this?", image])
    assert script.seen[0][-1].parts[-1].content == ["what is this?", image]


def test_rule():
    async def rule(c):
        await asyncio.sleep(0)
        return "there is no hotel in Atlantis" if c.args["city"] == "Atlantis" else None

    script = Scripted([call('{"city": "Atlantis"}')], [call('{"city": "Oslo"}')], [TextPart("Done.")])
    agent, booked = agent_of(script, toolmend.Stack(rules={"book": rule}))
    agent.run_sync("a hotel")
    assert booked == [("Oslo", 1)] and "there is no hotel in Atlantis" in script.seen[1][-1].parts[0].content


def test_exhausted():
    agent, booked = agent_of(Scripted([call('{"x": 1}')], [call('{"x": 2}')]), attempts=2)
    with pytest.raises(toolmend.InvalidToolCall) as e:
        agent.run_sync("a hotel")
    assert isinstance(e.value.message, ModelResponse) and e.value.message.parts[0].args == '{"x": 2}' and booked == []


class Answer(BaseModel):
    city: str
    stars: int


def test_output_tool():
    script = Scripted([ToolCallPart("final_result", '{"city": "Oslo", "stars": "3"}', "f")])
    agent = Agent(ToolmendModel(FunctionModel(script)), output_type=Answer)
    assert agent.run_sync("x").output == Answer(city="Oslo", stars=3) and len(script.seen) == 1


@pytest.mark.parametrize("again", [False, True])
def test_stream(again):
    turns = [[TextPart("Let me see"), call('{"city": "Oslo", "nights": "3"}')], [TextPart("All done")]]
    if again:
        turns.insert(0, [TextPart("First try"), call('{"nights": 3}')])
    script = Scripted(*turns)
    agent, booked = agent_of(script)
    events = []

    async def main():
        async def watch(ctx, stream):
            async for e in stream:
                events.append(e)

        return await agent.run("a hotel", event_stream_handler=watch)

    result = asyncio.run(main())
    assert result.output.strip() == "All done" and booked == [("Oslo", 3)]
    first = result.all_messages()[1]
    assert [p.content.strip() if isinstance(p, TextPart) else p.args_as_dict() for p in first.parts] == ["Let me see", {"city": "Oslo", "nights": 3}]


def test_run_stream():
    script = Scripted([call('{"city": "Oslo", "nights": "3"}')], [TextPart("All done now")])
    agent, booked = agent_of(script)

    async def main():
        async with agent.run_stream("a hotel") as result:
            return [t async for t in result.stream_text(delta=True, debounce_by=None)]

    assert [t.strip() for t in asyncio.run(main()) if t.strip()] == ["All", "done", "now"] and booked == [("Oslo", 3)]


def test_the_models_own_exception_comes_back():
    own = ConnectionError("down")

    def down(messages, info):
        raise own

    with pytest.raises(ConnectionError) as e:
        Agent(ToolmendModel(FunctionModel(down))).run_sync("x")
    assert e.value is own


@pytest.mark.parametrize("stream", [False, True])
def test_another_model_for_the_last_attempt(stream):
    large = Scripted([call('{"city": "Oslo"}')])
    models = {"large": FunctionModel(large, stream_function=large.stream)}
    agent, booked = agent_of(Scripted([call('{"x": 1}')], [TextPart("Done.")]), attempts=2, escalate="large", models=models)

    async def watch(ctx, events):
        async for _ in events:
            pass

    assert asyncio.run(agent.run("a hotel", event_stream_handler=watch if stream else None)).output.strip() == "Done." and booked == [("Oslo", 1)]
