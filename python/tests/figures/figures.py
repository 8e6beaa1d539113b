"""What a step through the child process costs, as ratios in one run. make inproc-bench runs it.

Each row is measured in turns with its base: one round of one, one round of the other. A figure is the lower quartile of the
rounds, because other programs make some of them slow.
"""

import asyncio
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import jsonschema
import toolmend
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from toolmend import _child
from toolmend.langchain import ToolmendMiddleware
from toolmend.pydantic_ai import ToolmendModel

SECONDS = float(os.environ.get("FIGURES_SECONDS", "0.4"))  # for each of the two


class Booking(BaseModel):
    city: str
    street: str
    nights: int
    note: str = ""


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "street": {"type": "string"}, "nights": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["city", "street", "nights"],
    "additionalProperties": False,
}
TOOL = {"name": "book", "description": "Books a hotel.", "parameters": SCHEMA}
TOOLS = [{"type": "function", "function": TOOL}] + [{"type": "function", "function": {**TOOL, "name": f"other{i}"}} for i in range(19)]
USER = [{"role": "user", "content": "A hotel in Oslo, please."}]
CALL_90 = json.dumps({"city": "Oslo", "street": "Karl Johans gate 1", "nights": 2, "note": "x" * 13})
CALL_700 = json.dumps({"city": "Oslo", "street": "Karl Johans gate 1", "nights": 2, "note": "x" * 623})
REPAIRED = CALL_90.replace(": 2,", ': "2",')
BROKEN = CALL_90.replace('"nights": 2, ', "")


def cpu():
    """The seconds of processor that this program and its children have used."""
    total = time.process_time()
    for child in _child._children.values():
        folder = f"/proc/{child.process.pid}/task"
        for thread in os.listdir(folder) if os.path.isdir(folder) else ():
            with open(f"{folder}/{thread}/schedstat") as f:
                total += int(f.read().split()[0]) / 1e9
    return total


def row(name, one, base, n=None):
    """Prints the time of one and of base, its ratio, and the ratio of their processor time."""
    times, used = ([], []), [0.0, 0.0]
    start = time.perf_counter()
    one(), base()
    block = 1 if time.perf_counter() - start > 0.03 else 20  # reading the processor time takes as long as a step
    end = time.perf_counter() + 2 * SECONDS
    for first in itertools.chain([True], itertools.repeat(False)):
        for i, f in enumerate((one, base)):
            before = cpu()
            for _ in range(block):
                start = time.perf_counter()
                f()
                times[i].append(time.perf_counter() - start)
            if not first:
                used[i] += cpu() - before
        if len(times[1]) >= (n or 7) and (n or time.perf_counter() > end):
            break
    a, b = (statistics.quantiles(t[2:], n=4)[0] for t in times)
    print(f"| {name} | {a * 1e6:,.0f} | {b * 1e6:,.0f} | {a / b:.2f} | {used[0] / used[1] if used[1] else 0:.2f} |", flush=True)


def scripted(*turns):
    state = {"n": 0}

    def call(messages, tools):
        arguments = turns[state["n"] % len(turns)]
        state["n"] += 1
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "book", "arguments": arguments}}]}

    return call


class Scripted(BaseChatModel):
    turns: list
    at: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.at += 1
        return ChatResult(generations=[ChatGeneration(message=self.turns[self.at % len(self.turns)].model_copy())])


@tool
def book(city: str, street: str, nights: int, note: str = "") -> str:
    """Books a hotel."""
    return "booked"


def memory(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def verdicts():
    print("\n| verdict on a call of 90 bytes | µs | base, µs | ratio | of processor time |\n|---|---|---|---|---|")
    stack, validator = toolmend.Stack(), jsonschema.Draft202012Validator(SCHEMA)
    row("`Stack.validate`; base: jsonschema with json.loads", lambda: stack.validate(TOOL, CALL_90), lambda: validator.validate(json.loads(CALL_90)))
    row("`Stack.validate`; base: pydantic `model_validate_json`", lambda: stack.validate(TOOL, CALL_90), lambda: Booking.model_validate_json(CALL_90))


def steps():
    print("\n| a step, 20 tools | µs | base, µs | ratio | of processor time |\n|---|---|---|---|---|")
    stack = toolmend.Stack()
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for name, turns in (("valid, 90 bytes", [CALL_90]), ("valid, 700 bytes", [CALL_700]), ("repaired", [REPAIRED]), ("re-asked once", [BROKEN, CALL_90])):
        call = stack(scripted(*turns))
        row(f"{name}; base: jsonschema with json.loads", lambda: call(USER, TOOLS), lambda: validator.is_valid(json.loads(turns[0])))


def history(n):
    """About 10 KB each, as a user and a model speak in turns."""
    return [(i % 2 == 0, f"{i} " + "The quick brown fox jumps over the lazy dog. " * 220) for i in range(n)]


def frameworks():
    print("\n| an agent's run of one step | µs | without Toolmend, µs | ratio | of processor time |\n|---|---|---|---|---|")
    answer = [AIMessage("Done.")]
    agents = [create_agent(Scripted(turns=answer), [book], middleware=m) for m in ([ToolmendMiddleware()], [])]
    definitions = ModelRequestParameters(function_tools=[ToolDefinition(name="book", parameters_json_schema=SCHEMA)])
    inner = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("Done.")]))
    wrapped = ToolmendModel(inner)
    loop = asyncio.new_event_loop()
    for size, name in ((1, "one message"), (101, "1 MB in 101 messages")):
        told = history(size)
        start = {"messages": [(HumanMessage if user else AIMessage)(said) for user, said in told]}
        row(f"LangChain, {name}", lambda: agents[0].invoke(start), lambda: agents[1].invoke(start))
        messages = [ModelRequest(parts=[UserPromptPart(said)]) if user else ModelResponse(parts=[TextPart(said)]) for user, said in told]
        row(f"pydantic-ai, the model alone, {name}", lambda: loop.run_until_complete(wrapped.request(messages, None, definitions)),
            lambda: loop.run_until_complete(inner.request(messages, None, definitions)))  # fmt: skip
        chat = [{"role": "user" if user else "assistant", "content": said} for user, said in told]
        call = toolmend.Stack()(lambda messages, tools: {"role": "assistant", "content": "Done.", "bytes": len(json.dumps(messages))})
        row(f"own client that writes its request as JSON, {name}", lambda: call(chat, TOOLS), lambda: json.dumps({"messages": chat, "tools": TOOLS}))


def tasks():
    print("\n| 100 tasks at once, the model takes 50 ms | µs | without Toolmend, µs | ratio | of processor time |\n|---|---|---|---|---|")
    stack = toolmend.Stack()

    async def model(messages, tools):
        await asyncio.sleep(0.05)
        return scripted(CALL_90)(messages, tools)

    async def all_of(call):
        await asyncio.gather(*[call(USER, TOOLS) for _ in range(100)])

    row("all valid", lambda: asyncio.run(all_of(stack(model))), lambda: asyncio.run(all_of(model)), 20)


def start():
    print("\n| start | µs | base, µs | ratio | of processor time |\n|---|---|---|---|---|")
    first = "import toolmend; toolmend.validate({'name': 'a'}, {})"
    run = lambda code: subprocess.run([sys.executable, "-c", code], check=True)  # noqa: E731
    row("first verdict of a program; base: import json, subprocess, asyncio", lambda: run(first), lambda: run("import json, subprocess, asyncio"), 10)
    child, own = memory(_child.child().process.pid), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nMemory after all of this: the child {child:.0f} MB, this program {own:.0f} MB.")


def versions():
    from importlib.metadata import version

    names = "langchain langchain-core pydantic-ai-slim pydantic jsonschema"
    print(f"Python {sys.version.split()[0]}, " + ", ".join(f"{n} {version(n)}" for n in names.split()))


if __name__ == "__main__":
    versions()
    for part in (verdicts, steps, frameworks, tasks, start):
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part()
