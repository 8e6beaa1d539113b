"""Decodes answers with the official Python clients, as programs do.

usage: decode.py URL TOOLS

Each line of the input is a job: {"n": 1, "format": "chat", "stream": true}. Each
line of the output is its result: {"n": 1, "WAY": [["pay", "{...}"]], ...}, where a
WAY is one of those to ask for that answer. A way that ends in an exception has
no calls, but for those that it was given whole before.
"""

import json
import sys

import anthropic
import openai

URL, TOOLS = sys.argv[1], json.loads(sys.argv[2])


def text(value):  # the clients check no types: some servers send objects
    return value if isinstance(value, str) else json.dumps(value)


def headers(job):
    return {"X-Exchange": str(job["n"])}


def chat_tools():
    return [{"type": "function", "function": {"name": t["name"], "parameters": t["schema"]}} for t in TOOLS]


def function_calls(message):
    return [[c.function.name, c.function.arguments] for c in message.tool_calls or [] if c.function]


def chat_create(job, calls):
    answer = OPENAI.chat.completions.create(model="m", messages=ASK, tools=chat_tools(), extra_headers=headers(job))
    calls += function_calls(answer.choices[0].message)


def chat_helper(job, calls):
    with OPENAI.chat.completions.stream(model="m", messages=ASK, tools=chat_tools(), extra_headers=headers(job)) as stream:
        calls += function_calls(stream.get_final_completion().choices[0].message)


def chat_deltas(job, calls):  # as in OpenAI's guide
    final = {}
    stream = OPENAI.chat.completions.create(model="m", messages=ASK, tools=chat_tools(), stream=True, extra_headers=headers(job))
    for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            if call.index not in final:
                final[call.index] = call
            else:
                final[call.index].function.arguments += call.function.arguments
    calls += [[c.function.name, c.function.arguments] for c in final.values()]


def response_calls(response):
    return [[i.name, i.arguments] for i in response.output if i.type == "function_call"]


def response_tools():
    return [{"type": "function", "name": t["name"], "parameters": t["schema"], "strict": False} for t in TOOLS]


def responses_create(job, calls):
    calls += response_calls(OPENAI.responses.create(model="m", input=ASK, tools=response_tools(), extra_headers=headers(job)))


def responses_helper(job, calls):
    with OPENAI.responses.stream(model="m", input=ASK, tools=response_tools(), extra_headers=headers(job)) as stream:
        calls += response_calls(stream.get_final_response())


def responses_items(job, calls):
    stream = OPENAI.responses.create(model="m", input=ASK, tools=response_tools(), stream=True, extra_headers=headers(job))
    for event in stream:
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            calls.append([event.item.name, event.item.arguments])


def message_tools():
    return [{"name": t["name"], "input_schema": t["schema"]} for t in TOOLS]


def block_calls(message):
    return [[b.name, b.input] for b in message.content if b.type == "tool_use"]


def messages_create(job, calls):
    calls += block_calls(
        ANTHROPIC.messages.create(model="m", max_tokens=9, messages=ASK, tools=message_tools(), extra_headers=headers(job))
    )


def messages_helper(job, calls):
    with ANTHROPIC.messages.stream(
        model="m", max_tokens=9, messages=ASK, tools=message_tools(), extra_headers=headers(job)
    ) as stream:
        calls += block_calls(stream.get_final_message())


WAYS = {
    ("chat", False): [chat_create],
    ("chat", True): [chat_helper, chat_deltas],
    ("responses", False): [responses_create],
    ("responses", True): [responses_helper, responses_items],
    ("anthropic", False): [messages_create],
    ("anthropic", True): [messages_helper],
}

ASK = [{"role": "user", "content": "?"}]
OPENAI = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
ANTHROPIC = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)

for line in sys.stdin:
    job = json.loads(line)
    result = {}
    for way in WAYS[job["format"], job["stream"]]:
        calls = result[way.__name__] = []
        try:
            way(job, calls)
        except Exception:
            pass
    result = {w: [c for c in cs if c[0]] for w, cs in result.items()}  # without a name there is no tool to run
    print(json.dumps({"n": job["n"], "calls": {w: [[text(v) for v in c] for c in cs] for w, cs in result.items()}}), flush=True)
