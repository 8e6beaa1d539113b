"""Decodes answers with the official Python clients, as programs do.

usage: decode.py URL TOOLS

Each line of the input is a job: {"n": 1, "format": "chat", "stream": true}. Each
line of the output is its result: {"n": 1, "WAY": [["pay", "{...}"]], ...}, where a
WAY is one of those to ask for that answer. A way that ends in an exception has
no calls, but for those that it was given whole before.
"""

import functools
import json
import sys

URL, TOOLS = sys.argv[1], json.loads(sys.argv[2])


# A package is imported where a job needs it: each is installed in a folder of its own.
@functools.cache
def openai():
    import openai

    return openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)


@functools.cache
def anthropic():
    import anthropic

    return anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)


@functools.cache
def genai():
    from google import genai

    return genai.Client(api_key="none", http_options={"base_url": URL})


def text(value):  # the clients check no types: some servers send objects
    return value if isinstance(value, str) else json.dumps(value)


def headers(job):
    return {"X-Exchange": str(job["n"])}


def chat_tools():
    return [{"type": "function", "function": {"name": t["name"], "parameters": t["schema"]}} for t in TOOLS]


def function_calls(message):
    return [[c.function.name, c.function.arguments] for c in message.tool_calls or [] if c.function]


def chat_create(job, calls):
    answer = openai().chat.completions.create(model="m", messages=ASK, tools=chat_tools(), extra_headers=headers(job))
    calls += function_calls(answer.choices[0].message)


def chat_helper(job, calls):
    with openai().chat.completions.stream(model="m", messages=ASK, tools=chat_tools(), extra_headers=headers(job)) as stream:
        calls += function_calls(stream.get_final_completion().choices[0].message)


def chat_deltas(job, calls):  # as in OpenAI's guide
    final = {}
    stream = openai().chat.completions.create(model="m", messages=ASK, tools=chat_tools(), stream=True, extra_headers=headers(job))
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
    calls += response_calls(openai().responses.create(model="m", input=ASK, tools=response_tools(), extra_headers=headers(job)))


def responses_helper(job, calls):
    with openai().responses.stream(model="m", input=ASK, tools=response_tools(), extra_headers=headers(job)) as stream:
        calls += response_calls(stream.get_final_response())


def responses_items(job, calls):
    stream = openai().responses.create(model="m", input=ASK, tools=response_tools(), stream=True, extra_headers=headers(job))
    for event in stream:
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            calls.append([event.item.name, event.item.arguments])


def message_tools():
    return [{"name": t["name"], "input_schema": t["schema"]} for t in TOOLS]


def block_calls(message):
    return [[b.name, b.input] for b in message.content if b.type == "tool_use"]


def messages_create(job, calls):
    calls += block_calls(
        anthropic().messages.create(model="m", max_tokens=9, messages=ASK, tools=message_tools(), extra_headers=headers(job))
    )


def messages_helper(job, calls):
    with anthropic().messages.stream(
        model="m", max_tokens=9, messages=ASK, tools=message_tools(), extra_headers=headers(job)
    ) as stream:
        calls += block_calls(stream.get_final_message())


def genai_ask(job):
    declared = [{"name": t["name"], "parameters_json_schema": t["schema"]} for t in TOOLS]
    config = {"tools": [{"function_declarations": declared}], "http_options": {"headers": headers(job)}}
    return {"model": "m", "contents": "?", "config": config}


def genai_calls(answer):
    return [[c.name, c.args or {}] for c in answer.function_calls or []]


def genai_generate(job, calls):
    calls += genai_calls(genai().models.generate_content(**genai_ask(job)))


def genai_stream(job, calls):
    for chunk in genai().models.generate_content_stream(**genai_ask(job)):
        calls += genai_calls(chunk)


def ollama_ask(job):
    import ollama

    client = ollama.Client(host=URL, headers=headers(job), verify=False)
    return client.chat(model="m", messages=ASK, tools=chat_tools(), stream=job["stream"])


def ollama_calls(answer):
    return [[c.function.name, dict(c.function.arguments)] for c in answer.message.tool_calls or []]


def ollama_chat(job, calls):
    calls += ollama_calls(ollama_ask(job))


def ollama_stream(job, calls):
    for line in ollama_ask(job):
        calls += ollama_calls(line)


ASK = [{"role": "user", "content": "?"}]

WAYS = {
    ("chat", False): [chat_create],
    ("chat", True): [chat_helper, chat_deltas],
    ("responses", False): [responses_create],
    ("responses", True): [responses_helper, responses_items],
    ("anthropic", False): [messages_create],
    ("anthropic", True): [messages_helper],
    ("gemini", False): [genai_generate],
    ("gemini", True): [genai_stream],
    ("ollama", False): [ollama_chat],
    ("ollama", True): [ollama_stream],
}

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
