"""Applications of the official SDKs, whose histories and tools providers refuse.

usage: heal.py APPLICATION URL PROMPT

Each application has a loop with one tool that reads a file. It prints the text of the last answer.
"""

import json
import sys
from typing import Annotated, Optional, Union

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, TypeAdapter

APPLICATION, URL, PROMPT = sys.argv[1:]
API = URL + "/v1"


def read_file(path, **_):
    with open(path) as f:
        return f.read()


class Read(BaseModel):
    """Read a file."""

    model_config = ConfigDict(extra="forbid")
    path: str


def function(schema, **more):
    """A tool of OpenAI Chat, as an application writes it by hand."""
    return {"type": "function", "function": {"name": "read_file", "description": "Read a file.", "parameters": schema, **more}}


def chat(messages, tools=None, save=lambda message: message.model_dump(exclude_none=True)):
    """A loop with openai-python. save is what the application keeps of a message."""
    import openai

    client = openai.OpenAI(base_url=API, api_key="k")
    while True:
        made = client.chat.completions.create(model="m", messages=messages, tools=tools or [function(Read.model_json_schema())])
        message = made.choices[0].message
        messages.append(save(message))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            try:
                result = read_file(**json.loads(call.function.arguments))
            except ValueError as error:
                result = f"The arguments are not JSON: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def user(text=PROMPT):
    return {"role": "user", "content": text}


def cut():
    """The model's arguments are cut off. The application says so to the model, and keeps the call."""
    return chat([user()])


def forgetful():
    """A store with the columns that OpenAI documents: reasoning_content is not one of them."""
    return chat([user()], save=lambda m: m.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))


def twice():
    """The user sent a second message before the model answered the first one."""
    return chat([user("Hello?"), user()])


def compatible():
    """A store without extra_content, at Gemini's endpoint for clients of OpenAI."""
    return forgetful()


def listed():
    """A store with a list of calls for each message, which may be empty."""
    save = lambda m: {"role": "assistant", "content": m.content, "tool_calls": [c.model_dump() for c in m.tool_calls or []]}
    return chat([user("Hello?"), {"role": "assistant", "content": "Hello.", "tool_calls": []}, user()], save=save)


def cancelled():
    """The user cancelled the first answer. The store has a message without content."""
    return chat([user("Hello?"), {"role": "assistant", "content": None}, user()])


def messages(history, tools=None, thinking=None, save=lambda before, content: before + [{"role": "assistant", "content": content}]):
    """A loop with anthropic-python. save is how the application keeps an answer."""
    import anthropic

    client = anthropic.Anthropic(base_url=URL, api_key="k")
    tools = tools or [{"name": "read_file", "input_schema": Read.model_json_schema()}]
    while True:
        more = {"thinking": thinking} if thinking else {}
        made = client.messages.create(model="m", max_tokens=4000, messages=history, tools=tools, **more)
        history = save(history, made.content)
        calls = [block for block in made.content if block.type == "tool_use"]
        text = "".join(block.text for block in made.content if block.type == "text")
        if text and not calls:
            return text
        if calls:
            results = [{"type": "tool_result", "tool_use_id": c.id, "content": read_file(**c.input)} for c in calls]
            history = history + [{"role": "user", "content": results}]


def resumed():
    """A session of Ollama, whose calls have no ids, goes on at Anthropic: the application numbers the calls of each message."""
    session = [user("Read a.txt."), ("a.txt", "a"), user("And b.txt."), ("b.txt", "b")]
    history = []
    for turn in session:
        if isinstance(turn, dict):
            history.append(turn)
            continue
        path, text = turn
        call = {"type": "tool_use", "id": "call_0", "name": "read_file", "input": {"path": path}}
        history.append({"role": "assistant", "content": [call]})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": text}]})
        history.append({"role": "assistant", "content": f"It says {text}."})
    return messages(history + [user()])


def switched():
    """A session of OpenAI Responses goes on at Anthropic. The application has kept both ids of a call as one."""
    call = {"type": "tool_use", "id": "call_Q1JuaH3v|fc_0f0d91e0", "name": "read_file", "input": {"path": "a.txt"}}
    return messages([
        user("Read a.txt."), {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "a"}]},
        {"role": "assistant", "content": "It says a."}, user(),
    ])


def stopped():
    """The user stopped the first answer before its first word. The application keeps what had come."""
    return messages([user("Hello?"), {"role": "assistant", "content": ""}, user()])


def prefilled():
    """The application begins the model's answer for it."""
    return messages([user(), {"role": "assistant", "content": "I will read the file."}])


def merged():
    """An answer had no text and no call. The application asks again, and keeps one message of both answers."""

    def save(before, content):
        if before[-1]["role"] == "assistant":
            return before[:-1] + [{"role": "assistant", "content": before[-1]["content"] + content}]
        return before + [{"role": "assistant", "content": content}]

    import anthropic

    client = anthropic.Anthropic(base_url=URL, api_key="k")
    tools = [{"name": "read_file", "input_schema": Read.model_json_schema()}]
    history, parts = [user()], []
    while True:
        made = client.messages.create(model="m", max_tokens=4000, messages=history, tools=tools, thinking={"type": "enabled", "budget_tokens": 1024})
        parts += made.content
        calls = [block for block in made.content if block.type == "tool_use"]
        text = "".join(block.text for block in made.content if block.type == "text")
        if not calls and not text:
            continue
        history, parts = save(history, parts), []
        if not calls:
            return text
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": read_file(**c.input)} for c in calls]
        history.append({"role": "user", "content": results})


def responses(items, keep=lambda items: items, stream=False):
    """A loop with openai-python. keep is what the application keeps of a turn; then the user asks again."""
    import openai

    client = openai.OpenAI(base_url=API, api_key="k")
    tool = {"type": "function", "name": "read_file", "parameters": Read.model_json_schema(), "strict": False}
    for words in (PROMPT, "And now?"):
        items.append(user(words))
        calls = [None]
        while calls:
            sent = dict(model="m", input=items, tools=[tool], store=False, include=["reasoning.encrypted_content"])
            if stream:  # items are kept when they are done, and again with the whole response
                items = list(items)
                for event in client.responses.create(**sent, stream=True):
                    if event.type == "response.output_item.done":
                        items.append(event.item.model_dump(exclude_none=True))
                    if event.type == "response.completed":
                        made = event.response
            else:
                made = client.responses.create(**sent)
            items = items + [item.model_dump(exclude_none=True) for item in made.output]
            calls = [item for item in made.output if item.type == "function_call"]
            for c in calls:
                items.append({"type": "function_call_output", "call_id": c.call_id, "output": read_file(**json.loads(c.arguments))})
        items = keep(items)
    return made.output_text


def trimmed():
    """Of a long history the last five items are kept."""
    return responses([], keep=lambda items: items[-5:])


def withdrawn():
    """The calls and results of the last turn are left out, because they are long."""
    return responses([], keep=lambda items: [i for i in items if i.get("type") not in ("function_call", "function_call_output")])


def doubled():
    """The application keeps each item of a stream, and then the items of the whole response."""
    return responses([], stream=True)


def mistaken():
    """A session of OpenAI Chat goes on at Responses. The application gives items the id of their call."""
    ids = {"id": "call_a", "call_id": "call_a"}
    return responses([
        user("Read a.txt."), {"type": "function_call", "name": "read_file", "arguments": '{"path": "a.txt"}', **ids},
        {"type": "function_call_output", "call_id": "call_a", "output": "a"},
    ])


def gemini(tool, contents=None, keep=lambda content: content):
    """A loop with google-genai. keep is what the application keeps of an answer."""
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="k", http_options={"base_url": URL})
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[tool])])
    contents = contents or [types.Content(role="user", parts=[types.Part(text=PROMPT)])]
    while True:
        made = client.models.generate_content(model="m", contents=contents, config=config)
        contents.append(keep(made.candidates[0].content))
        calls = made.function_calls or []
        if not calls:
            return made.text
        parts = [types.Part.from_function_response(name=c.name, response={"result": read_file(**c.args)}) for c in calls]
        for part, call in zip(parts, calls):
            part.function_response.id = call.id
        contents.append(types.Content(role="user", parts=parts))


def declared(schema, key="parameters_json_schema"):
    return {"name": "read_file", "description": "Read a file.", key: schema}


def rebuilt():
    """The application keeps names and arguments, and builds the content of the model from them."""
    from google.genai import types

    def keep(content):
        calls = [part.function_call for part in content.parts if part.function_call]
        parts = [types.Part.from_function_call(name=c.name, args=c.args) for c in calls]
        for part, call in zip(parts, calls):
            part.function_call.id = call.id
        return types.Content(role="model", parts=parts) if parts else content

    return gemini(declared(Read.model_json_schema()), keep=keep)


def moved():
    """The session goes on with another account."""
    from google.genai import types

    contents = [types.Content(role="user", parts=[types.Part(text=PROMPT)])]
    gemini(declared(Read.model_json_schema()), contents)
    contents.append(types.Content(role="user", parts=[types.Part(text="And now?")]))
    return gemini(declared(Read.model_json_schema()), contents)


def mistral(messages):
    """A loop with mistralai."""
    from mistralai.client import Mistral

    client = Mistral(api_key="k", server_url=URL)
    while True:
        message = client.chat.complete(model="m", messages=messages, tools=[function(Read.model_json_schema())]).choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for c in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": c.id, "name": c.function.name, "content": read_file(**json.loads(c.function.arguments))})


def interjected():
    """The user wrote while the tool ran. The application sends both at once."""
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
    return mistral([
        user("Read a.txt."), {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "read_file", "content": "a"}, user(),
    ])


def from_openai():
    """A session of OpenAI goes on at Mistral, with its ids."""
    call = {"id": "call_PTLP8xhu3uwZk4l3nlnrrJha", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
    return mistral([
        user("Read a.txt."), {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": "read_file", "content": "a"}, {"role": "assistant", "content": "It says a."}, user(),
    ])


def handed_over():
    """Another agent has written the last message."""
    return mistral([user(), {"role": "assistant", "content": "I give this to the agent that reads files."}])


class Tagged(Read):
    tags: set[str]


class Lines(Read):
    lines: Optional[tuple[int, int]] = None


class Page(BaseModel):
    url: AnyUrl


class Then(BaseModel):
    path: str
    then: list["Then"] = []


class Ranged(Read):
    first: Annotated[int, Field(ge=1, le=100)] = 1


class Matched(Read):
    path: Annotated[str, Field(pattern=r"\.txt$")]


class Listed(Read):
    words: Annotated[list[Annotated[list[str], Field(max_length=100)]], Field(max_length=100)] = []


class Both(BaseModel):
    left: "Test"
    right: "Test"


class Test(BaseModel):
    both: Both


class Where(Read):
    where: Optional[Test] = None


class A(BaseModel):
    n: int = 0


class B(BaseModel):
    a: A = A()


class C(BaseModel):
    b: B = B()


class D(BaseModel):
    c: C = C()


class E(BaseModel):
    d: list[D] = []


class Nested(Read):
    e: E = E()


Many = TypeAdapter(Union[Read, Page])


def inlined(schema):
    """A schema without references, as applications write it for Gemini."""
    definitions = schema.pop("$defs", {})

    def put(value):
        if isinstance(value, dict) and "$ref" in value:
            return put(definitions[value["$ref"].removeprefix("#/$defs/")])
        if isinstance(value, dict):
            return {key: put(v) for key, v in value.items()}
        return [put(v) for v in value] if isinstance(value, list) else value

    return put(schema)


def tagged():
    import openai

    tool = openai.pydantic_function_tool(Tagged, name="read_file")
    return chat([user()], [tool])


def strict_by_hand():
    """strict is set, and the schema is as pydantic writes it."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return chat([user()], [function(schema, strict=True)])


def strict_tool(name, model):
    return {"name": name, "input_schema": model.model_json_schema(), "strict": True}


def of_mcp():
    """Beside the tool there is one of an MCP server, without parameters."""
    tool = {"type": "function", "function": {"name": "get_me", "description": "The user.", "parameters": {"type": "object"}}}
    return chat([user()], [function(Read.model_json_schema()), tool])


def draft4():
    """The schema comes from an OpenAPI 3.0 document."""
    schema = Read.model_json_schema()
    schema["properties"]["first"] = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    return messages([user()], [{"name": "read_file", "input_schema": schema}])


def many_strict():
    return messages([user()], [strict_tool("read_file", Read)] + [strict_tool(f"tool_{i}", Read) for i in range(24)])


def wide():
    """A strict tool with thirty optional parameters beside a small one."""
    from pydantic import create_model

    fields = {f"option_{i}": (Optional[str], None) for i in range(30)}
    large = create_model("Large", __config__=ConfigDict(extra="forbid"), **fields)
    return messages([user()], [strict_tool("read_file", Read), strict_tool("search", large)])


def keywords_of_gemini():
    """The schema as pydantic writes it, as parameters."""
    return gemini(declared(Read.model_json_schema(), "parameters"))


def format_of_gemini():
    schema = Read.model_json_schema()
    del schema["additionalProperties"]
    schema["properties"]["source"] = {"type": "string", "format": "uri"}
    return gemini(declared(schema, "parameters"))


APPLICATIONS = {f.__name__: f for f in (
    cut, forgetful, twice, compatible, listed, cancelled, resumed, switched, mistaken, from_openai, stopped, prefilled, merged, trimmed, withdrawn, doubled, rebuilt, moved, interjected, handed_over,
    tagged, strict_by_hand, of_mcp, draft4, many_strict, wide, keywords_of_gemini, format_of_gemini,
)} | {
    "tuple": lambda: chat([user()], [function(Lines.model_json_schema())]),
    "union": lambda: chat([user()], [function(Many.json_schema())]),
    "recursive": lambda: chat([user()], [function(Then.model_json_schema())]),
    "recursive_top": lambda: chat([user()], [function(Then.model_json_schema())]),
    "pattern": lambda: chat([user()], [function(Matched.model_json_schema())]),
    "union_anthropic": lambda: messages([user()], [{"name": "read_file", "input_schema": Many.json_schema()}]),
    "range_anthropic": lambda: messages([user()], [strict_tool("read_file", Ranged)]),
    "loop_gemini": lambda: gemini(declared(Where.model_json_schema())),
    "large_gemini": lambda: gemini(declared(Listed.model_json_schema())),
    "deep_gemini": lambda: gemini(declared(inlined(Nested.model_json_schema()))),
}
print(APPLICATIONS[APPLICATION]())
