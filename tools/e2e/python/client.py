"""A program with one tool, in each way that the official clients have to ask.

usage: client.py WAY URL PROMPT

With an empty URL the client reads its own variable. RETRIES is how often it repeats a refused
request; without it the client decides. It runs the calls of the model without a check of its own, until there is no
more call, and prints the text of the last answer. The variable ROW changes what
it asks for: none, allowed and single forbid calls, and it stops with an error if it gets
one; container and conversation name the container or the conversation of the
answers before.
"""

import json
import os
import sys

WAY, URL, PROMPT = sys.argv[1:]
ROW = os.environ.get("ROW", "")
MORE = {"max_retries": int(os.environ["RETRIES"])} if "RETRIES" in os.environ else {}
NAME, DESCRIPTION, OTHER = "read_file", "Read a file.", "list_files"
NOTHING = {"type": "object", "properties": {}}
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
KEPT = {"type", "text", "id", "name", "input", "thinking", "signature", "tool_use_id", "content"}
CONTAINER = []  # the ids of the containers of the answers
STREAMED = WAY.rsplit("-", 1)[1] in ("stream", "create")
# A streamed answer must not be silent for ten seconds.
READ = 10 if STREAMED else 60


def permitted(names):
    """Raises an error if the calls with these names are not what was allowed."""
    if ROW == "none" and names or ROW == "allowed" and NAME in names or ROW == "single" and len(names) > 1:
        raise RuntimeError("forbidden call")


def run(arguments):
    print("call", json.dumps(arguments), flush=True)
    with open(arguments["path"]) as f:
        return f.read()


def chat(client, messages):
    tools = [{"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}}]
    ask = dict(model="m", messages=messages, tools=tools)
    if ROW == "none":
        ask["tool_choice"] = "none"
    elif ROW == "allowed":
        other = {"type": "function", "function": {"name": OTHER}}
        tools.append({"type": "function", "function": {"name": OTHER, "parameters": NOTHING}})
        ask["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [other]}}
    elif ROW == "single":
        ask["parallel_tool_calls"] = False
    if STREAMED:
        with client.chat.completions.stream(**ask) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**ask).choices[0].message
    calls = message.tool_calls or []
    permitted([c.function.name for c in calls])
    assert message.role == "assistant", message.role
    messages.append({
        "role": "assistant",
        "content": message.content,
        "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in calls
        ],
    } if calls else {"role": "assistant", "content": message.content})
    for c in calls:
        result = run(json.loads(c.function.arguments))
        messages.append({"role": "tool", "tool_call_id": c.id, "content": result})
    return None if calls else message.content or ""


def responses(client, items):
    tools = [{"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}]
    ask = dict(model="m", input=items, tools=tools)
    if ROW == "none":
        ask["tool_choice"] = "none"
    elif ROW == "allowed":
        tools.append({"type": "function", "name": OTHER, "parameters": NOTHING, "strict": False})
        ask["tool_choice"] = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": OTHER}]}
    elif ROW == "single":
        ask["parallel_tool_calls"] = False
    elif ROW == "conversation":
        ask["conversation"] = "conv_1"
    if WAY.endswith("create"):
        response = last(client.responses.create(stream=True, **ask))
    elif STREAMED:
        with client.responses.stream(**ask) as stream:
            last(stream)
            response = stream.get_final_response()
    else:
        response = client.responses.create(**ask)
    calls = [i for i in response.output if i.type == "function_call"]
    permitted([c.name for c in calls])
    if ROW == "conversation":
        items.clear()  # the provider has them
    for c in calls:
        if ROW != "conversation":
            items.append({"type": "function_call", "call_id": c.call_id, "name": c.name, "arguments": c.arguments})
        items.append({
            "type": "function_call_output", "call_id": c.call_id, "output": run(json.loads(c.arguments)),
        })
    return None if calls else response.output_text


def last(events):
    """Returns the response at the end of a stream."""
    response = None
    for event in events:
        if event.type == "response.completed":
            response = event.response
        elif event.type == "response.failed":
            raise RuntimeError(event.response.error.message)
    return response


def messages(client, history):
    tools = [{"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}]
    ask = dict(model="m", max_tokens=1000, messages=history, tools=tools)
    if ROW == "none":
        ask["tool_choice"] = {"type": "none"}
    elif ROW == "single":
        ask["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    elif CONTAINER:
        ask["extra_body"] = {"container": CONTAINER[-1]}
    if STREAMED:
        with client.messages.stream(**ask) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**ask)
    assert message.role == "assistant", message.role
    calls = [b for b in message.content if b.type == "tool_use"]
    permitted([c.name for c in calls])
    container = getattr(message, "container", None)
    if container:
        CONTAINER.append(container["id"] if isinstance(container, dict) else container.id)
    history.append({
        "role": "assistant",
        "content": [b.model_dump(include=KEPT) for b in message.content],
    })
    history.append({
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": c.id, "content": run(c.input)} for c in calls],
    })
    return None if calls else "".join(b.text for b in message.content if b.type == "text")


def main():
    if WAY.startswith("openai"):
        import openai

        client = openai.OpenAI(base_url=URL + "/v1" if URL else None, api_key="k", timeout=openai.Timeout(60, read=READ), **MORE)
        step = chat if "chat" in WAY else responses
    else:
        import anthropic

        client = anthropic.Anthropic(base_url=URL or None, api_key="k", timeout=anthropic.Timeout(60, read=READ), **MORE)
        step = messages
    history = [{"role": "user", "content": PROMPT}]
    text = None
    while text is None:
        text = step(client, history)
    print(text)


main()
