"""A program with one tool, in each way that the official clients have to ask.

usage: client.py WAY URL PROMPT

It runs the calls of the model without a check of its own, until there is no
more call, and prints the text of the last answer.
"""

import json
import sys

WAY, URL, PROMPT = sys.argv[1:]
NAME, DESCRIPTION = "read_file", "Read a file."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
STREAMED = WAY.rsplit("-", 1)[1] in ("stream", "create")
# A streamed answer must not be silent for ten seconds.
READ = 10 if STREAMED else 60


def run(arguments):
    print("call", json.dumps(arguments), flush=True)
    with open(arguments["path"]) as f:
        return f.read()


def chat(client, messages):
    tools = [{"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}}]
    ask = dict(model="m", messages=messages, tools=tools)
    if STREAMED:
        with client.chat.completions.stream(**ask) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**ask).choices[0].message
    calls = message.tool_calls or []
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
    return None if calls else message.content


def responses(client, items):
    tools = [{"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}]
    ask = dict(model="m", input=items, tools=tools)
    if WAY.endswith("create"):
        response = last(client.responses.create(stream=True, **ask))
    elif STREAMED:
        with client.responses.stream(**ask) as stream:
            last(stream)
            response = stream.get_final_response()
    else:
        response = client.responses.create(**ask)
    calls = [i for i in response.output if i.type == "function_call"]
    for c in calls:
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
    if STREAMED:
        with client.messages.stream(**ask) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**ask)
    assert message.role == "assistant", message.role
    calls = [b for b in message.content if b.type == "tool_use"]
    history.append({
        "role": "assistant",
        "content": [b.model_dump(include={"type", "text", "id", "name", "input", "thinking", "signature"}) for b in message.content],
    })
    history.append({
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": c.id, "content": run(c.input)} for c in calls],
    })
    return None if calls else "".join(b.text for b in message.content if b.type == "text")


def main():
    if WAY.startswith("openai"):
        import openai

        client = openai.OpenAI(base_url=URL + "/v1", api_key="k", timeout=openai.Timeout(60, read=READ))
        step = chat if "chat" in WAY else responses
    else:
        import anthropic

        client = anthropic.Anthropic(base_url=URL, api_key="k", timeout=anthropic.Timeout(60, read=READ))
        step = messages
    history = [{"role": "user", "content": PROMPT}]
    text = None
    while text is None:
        text = step(client, history)
    print(text)


main()
