import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel

import toolmend
from toolmend.langchain import ToolmendMiddleware


class Scripted(BaseChatModel):
    turns: list[Any]
    seen: list[Any] = []
    bound: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        self.bound.append((tools, kwargs))
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.turns.pop(0))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        m = self._generate(messages).generations[0].message
        for word in m.content.split():
            chunk = ChatGenerationChunk(message=AIMessageChunk(word + " ", id=m.id))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        if m.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk("", id=m.id, tool_calls=m.tool_calls))


def turn(*args, said="", **more):
    return AIMessage(said, tool_calls=[{"id": f"c{i}", "name": "book", "args": a} for i, a in enumerate(args)], usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}, **more)


booked = []


@tool
def book(city: str, nights: int = 1) -> str:
    """Books a hotel."""
    booked.append((city, nights))
    return f"booked {city}"


def run(model, middleware, how="invoke"):
    booked.clear()
    agent = create_agent(model, [book], system_prompt="Be brief.", middleware=[middleware])
    start = {"messages": [HumanMessage("a hotel in Oslo")]}
    return agent.invoke(start) if how == "invoke" else asyncio.run(agent.ainvoke(start))


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_repaired(how):
    model = Scripted(turns=[turn({"city": "Oslo", "nights": "3"}), AIMessage("Done.")])
    out = run(model, ToolmendMiddleware(), how)
    assert booked == [("Oslo", 3)] and out["messages"][1].tool_calls[0]["args"] == {"city": "Oslo", "nights": 3} and len(model.seen) == 2


def test_text_that_is_not_json():
    broken = AIMessage("", invalid_tool_calls=[{"type": "invalid_tool_call", "id": "c0", "name": "book", "args": '{"nights": 2, "city": "Oslo"', "error": "x"}])
    run(Scripted(turns=[broken, AIMessage("Done.")]), ToolmendMiddleware())
    assert booked == [("Oslo", 2)]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_asked_again_with_siblings(how):
    signed = turn({"nights": 2}, {"city": "Rome"}, additional_kwargs={"signature": "s"})
    model = Scripted(turns=[signed, turn({"city": "Oslo", "nights": 2}, {"city": "Rome"}), AIMessage("Done.")])
    out = run(model, ToolmendMiddleware(), how)
    assert sorted(booked) == [("Oslo", 2), ("Rome", 1)] and [m.type for m in out["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    system, human, failed, first, second = model.seen[1]
    assert isinstance(system, SystemMessage) and human.content == "a hotel in Oslo" and failed.additional_kwargs == {"signature": "s"}
    assert isinstance(first, ToolMessage) and first.status == "error" and "required property is missing" in first.content
    assert "not executed" in second.content and second.status == "success"
    assert out["messages"][1].usage_metadata["input_tokens"] == 20


def test_a_tool_that_changes_in_place():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ran, middleware = [], ToolmendMiddleware()
    get = StructuredTool(name="get", description="Gets.", args_schema=schema, func=lambda n: ran.append(n) or "got")
    for kind in ("integer", "string"):
        schema["properties"]["n"]["type"] = kind
        call = AIMessage("", tool_calls=[{"id": "c", "name": "get", "args": {"n": "3"}}])
        create_agent(Scripted(turns=[call, AIMessage("Done.")]), [get], middleware=[middleware]).invoke({"messages": [HumanMessage("x")]})
    assert ran == [3, "3"]


def test_an_image_stays_where_the_calls_are_text():
    model = Scripted(turns=[AIMessage("A cat.")])
    image = HumanMessage([{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}])
    create_agent(model, [book], middleware=[ToolmendMiddleware(text_call=True)]).invoke({"messages": [image]})
    assert model.seen[0][-1].content == image.content


def test_rule():
    stack = toolmend.Stack(rules={"book": lambda c: {"pointer": "/city", "message": "there is no hotel in Atlantis"} if c.args["city"] == "Atlantis" else None})
    model = Scripted(turns=[turn({"city": "Atlantis"}), turn({"city": "Oslo"}), AIMessage("Done.")])
    run(model, ToolmendMiddleware(stack))
    assert booked == [("Oslo", 1)] and "there is no hotel in Atlantis" in model.seen[1][-1].content


def test_exhausted():
    model = Scripted(turns=[turn({"nights": 1}), turn({"nights": 2}), turn({"nights": 3})])
    with pytest.raises(toolmend.InvalidToolCall) as e:
        run(model, ToolmendMiddleware())
    assert isinstance(e.value.message, AIMessage) and e.value.message.tool_calls[0]["args"] == {"nights": 3} and booked == []


def test_unchanged_is_the_same_object():
    answer = turn({"city": "Oslo"}, id="m1")
    seen = []

    class Outer(ToolmendMiddleware):
        def wrap_model_call(self, request, handler):
            r = super().wrap_model_call(request, handler)
            seen.append(r.result[0])
            return r

    run(Scripted(turns=[answer, AIMessage("Done.")]), Outer())
    assert seen[0] is answer


def test_stream():
    booked.clear()
    model = Scripted(turns=[turn({"nights": 2}, said="Let me see"), turn({"city": "Oslo"}, said="Now then"), AIMessage("All done")])
    agent = create_agent(model, [book], middleware=[ToolmendMiddleware()])
    texts = [m.content for m, _ in agent.stream({"messages": [HumanMessage("x")]}, stream_mode="messages") if m.type == "AIMessageChunk"]
    assert booked == [("Oslo", 1)]
    assert "".join(texts).split() == ["Let", "me", "see", "Now", "then", "All", "done"]  # a first attempt cannot be taken back


class Answer(BaseModel):
    city: str
    stars: int


def test_structured_answer():
    good = AIMessage("", tool_calls=[{"id": "s", "name": "Answer", "args": {"city": "Oslo", "stars": 3}}])
    model = Scripted(turns=[turn({"city": "Oslo", "nights": "2"}), good])
    agent = create_agent(model, [book], middleware=[ToolmendMiddleware()], response_format=ToolStrategy(Answer))
    assert agent.invoke({"messages": [HumanMessage("x")]})["structured_response"] == Answer(city="Oslo", stars=3)


def test_the_models_own_exception_comes_back():
    class Down(Scripted):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            raise self.turns[0]

    own = ConnectionError("down")
    with pytest.raises(ConnectionError) as e:
        run(Down(turns=[own]), ToolmendMiddleware())
    assert e.value is own


def test_another_model_for_the_last_attempt():
    small, large = Scripted(turns=[turn({"nights": 1}), AIMessage("Done.")]), Scripted(turns=[turn({"city": "Oslo"})], seen=[])
    run(small, ToolmendMiddleware(attempts=2, escalate="large", models={"large": large}))
    assert booked == [("Oslo", 1)] and len(large.seen) == 1
