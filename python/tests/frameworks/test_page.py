"""The programs of docs/python.md."""

import os
import re

import pytest
from test_langchain import Scripted, book, booked, turn
from langchain_core.messages import AIMessage, HumanMessage
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

PAGE = open(os.path.join(os.path.dirname(__file__), "../../../docs/python.md"), encoding="utf-8").read()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", PAGE, re.S))
RULES = {"book": lambda call: "no hotel there" if call.args["city"] == "Atlantis" else None}


def agent_of(name):
    program: dict = {}
    exec(FILES[name], program)
    return program["agent"]


def test_langchain_with_its_own_middlewares():
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelCallLimitMiddleware, wrap_model_call

    seen = []

    @wrap_model_call
    def mine(request, handler):
        seen.append(len(request.messages))
        return handler(request)

    turns = [turn({"city": "Atlantis"}), turn({"city": "Oslo", "nights": "2"}), AIMessage("Done.")]
    booked.clear()
    agent_of("lc.py")(Scripted(turns=list(turns)), [book], RULES).invoke({"messages": [HumanMessage("x")]})
    assert booked == [("Oslo", 2)]

    from toolmend.langchain import ToolmendMiddleware

    for order, want in (([mine, ToolmendMiddleware(rules=RULES)], [1, 3]), ([ToolmendMiddleware(rules=RULES), mine], [1, 3, 3])):
        seen.clear()
        booked.clear()
        agent = create_agent(Scripted(turns=list(turns)), [book], middleware=[*order, ModelCallLimitMiddleware(run_limit=5)])
        agent.invoke({"messages": [HumanMessage("x")]})
        assert (seen, booked) == (want, [("Oslo", 2)])


@pytest.mark.parametrize("name", ["pai.py"])
def test_pydantic_ai(name):
    turns, ran = [ToolCallPart("book", '{"city": "Atlantis"}', "a"), ToolCallPart("book", {"city": "Oslo"}, "b"), TextPart("Done.")], []
    agent = agent_of(name)(FunctionModel(lambda messages, info: ModelResponse(parts=[turns.pop(0)])), RULES)

    @agent.tool_plain
    def book(city: str) -> str:
        ran.append(city)
        return "ok"

    assert agent.run_sync("x").output == "Done." and ran == ["Oslo"]
