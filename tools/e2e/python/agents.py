"""An agent of a framework, with one tool that reads a file.

usage: agents.py WAY URL PROMPT

With an empty URL the official SDKs read their own variables. RETRIES is how often they repeat a
refused request; without it they decide. It prints the text of the last answer. The variable ROW is none or single for clients that
forbid calls, and that stop with an error if they get one.
"""

import asyncio
import os
import sys

WAY, URL, PROMPT = sys.argv[1:]
ROW = os.environ.get("ROW", "")
API = URL + "/v1"


def permitted(calls):
    """Raises an error if the calls are not what was allowed."""
    if ROW == "none" and calls or ROW == "single" and len(calls) > 1:
        raise RuntimeError("forbidden call")


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: The path of the file.
    """
    print("call", path, flush=True)
    with open(path) as f:
        return f.read()


SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
FUNCTION = {"type": "function", "function": {"name": "read_file", "description": "Read a file.", "parameters": SCHEMA}}


def langchain():
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool

    if WAY.endswith("messages"):
        from langchain_anthropic import ChatAnthropic

        thinking = {"type": "enabled", "budget_tokens": 1024}
        model = ChatAnthropic(model="m", base_url=URL, api_key="k", max_tokens=4000, thinking=thinking, streaming=True)
    else:
        from langchain_openai import ChatOpenAI

        responses = WAY.endswith("responses")
        model = ChatOpenAI(
            model="m", base_url=API, api_key="k", timeout=60, use_responses_api=responses, streaming=responses,
            include=["reasoning.encrypted_content"] if responses else None, store=False if responses else None,
            output_version="responses/v1" if responses else None,
        )
    tool = StructuredTool(name="read_file", description="Read a file.", args_schema=SCHEMA, func=read_file)
    if "CONVERSATION" in os.environ:
        return conversation(model, os.environ["CONVERSATION"])
    agent = create_agent(model, tools=[tool])
    answer = agent.invoke({"messages": [("user", PROMPT)]}, {"recursion_limit": 200})["messages"][-1]
    return answer.text if isinstance(answer.text, str) else answer.text()


def conversation(model, kind):
    """A conversation of three turns. The first one calls the tool.

    interrupted: the tool is interrupted, and the checkpoint has the call alone.
    trimmed: of the history the last three messages are sent, which begin with a result.
    continued: the checkpoint has the whole history.
    """
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage, trim_messages
    from langchain_core.tools import StructuredTool
    from langgraph.checkpoint.memory import InMemorySaver

    def interrupt(path):
        raise KeyboardInterrupt

    read = interrupt if kind == "interrupted" else read_file
    tool = StructuredTool(name="read_file", description="Read a file.", args_schema=SCHEMA, func=read)
    trims = kind == "trimmed"
    agent = create_agent(model, tools=[tool], checkpointer=None if trims else InMemorySaver())
    thread, first = {"configurable": {"thread_id": "1"}}, []
    for words in (PROMPT, "Go on.", "And now?"):
        sent = [("user", words)]
        if trims and first:
            sent = trim_messages(first + [HumanMessage(words)], max_tokens=3, token_counter=len, strategy="last")
        try:
            messages = agent.invoke({"messages": sent}, thread)["messages"]
        except KeyboardInterrupt:
            continue
        first = first or messages
    answer = messages[-1]
    return answer.text if isinstance(answer.text, str) else answer.text()


def claude_agent_sdk():
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    async def run():
        async for message in query(prompt=PROMPT, options=ClaudeAgentOptions(allowed_tools=["Read"])):
            if isinstance(message, ResultMessage):
                return message.result

    return asyncio.run(run())


def openai_agents():
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=API, api_key="k")
    model = agents.OpenAIChatCompletionsModel if WAY.endswith("chat") else agents.OpenAIResponsesModel
    agent = agents.Agent(
        name="reader", tools=[agents.function_tool(read_file)], model=model(model="m", openai_client=client),
    )

    async def run():
        result = agents.Runner.run_streamed(agent, PROMPT, max_turns=100)
        async for _ in result.stream_events():
            pass
        return result.final_output

    return asyncio.run(run())


def google_genai():
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=URL or None)
    if "RETRIES" in os.environ:
        options.retry_options = types.HttpRetryOptions(attempts=1 + int(os.environ["RETRIES"]))
    client = genai.Client(api_key="k", http_options=options)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[
            {"name": "read_file", "description": "Read a file.", "parameters_json_schema": SCHEMA},
        ])],
    )
    if ROW == "none":
        config.tool_config = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="NONE"))
    chat = client.chats.create(model="m", config=config)
    message = PROMPT
    while True:
        calls, text = [], ""
        for chunk in chat.send_message_stream(message):
            calls += chunk.function_calls or []
            text += "".join(p.text or "" for p in chunk.parts or [] if not p.thought)
        permitted(calls)
        if not calls:
            return text
        message = []
        for c in calls:
            part = types.Part.from_function_response(name=c.name, response={"result": read_file(**c.args)})
            part.function_response.id = c.id
            message.append(part)


def google_adk():
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(LlmAgent(name="reader", model="gemini-2.5-pro", tools=[read_file]), app_name="reader")

    async def run():
        session = await runner.session_service.create_session(app_name="reader", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=PROMPT)])
        text = ""
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        ):
            if event.is_final_response() and event.content:
                text = "".join(p.text or "" for p in event.content.parts or [])
        return text

    return asyncio.run(run())


def strands():
    from strands import Agent, tool

    if WAY.endswith("messages"):
        from strands.models.anthropic import AnthropicModel

        model = AnthropicModel(client_args={"api_key": "k", "base_url": URL}, model_id="m", max_tokens=4000)
    else:
        from strands.models.openai import OpenAIModel

        model = OpenAIModel(client_args={"api_key": "k", "base_url": API}, model_id="m")
    return str(Agent(model=model, tools=[tool(read_file)], callback_handler=None)(PROMPT))


def agno():
    from agno.agent import Agent

    if WAY.endswith("messages"):
        from agno.models.anthropic import Claude

        model = Claude(id="m", api_key="k", client_params={"base_url": URL}, thinking={"type": "enabled", "budget_tokens": 1024})
    elif WAY.endswith("responses"):
        from agno.models.openai import OpenAIResponses

        model = OpenAIResponses(id="gpt-5", api_key="k", base_url=API)
    else:
        from agno.models.openai import OpenAIChat

        model = OpenAIChat(id="m", api_key="k", base_url=API)
    agent = Agent(model=model, tools=[read_file], telemetry=False)
    text = ""
    for event in agent.run(PROMPT, stream=True):
        if event.event == "RunContent":
            text += event.content or ""
        if event.event == "RunError":
            raise RuntimeError(event.content)
    return text


def haystack():
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
    from haystack.utils import Secret

    model = OpenAIChatGenerator(model="m", api_base_url=API, api_key=Secret.from_token("k"), streaming_callback=lambda chunk: None)
    tool = Tool(name="read_file", description="Read a file.", parameters=SCHEMA, function=read_file)
    return Agent(chat_generator=model, tools=[tool]).run(messages=[ChatMessage.from_user(PROMPT)])["messages"][-1].text


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.usage import UsageLimits

    if WAY.endswith("messages"):
        from pydantic_ai.models.anthropic import AnthropicModel as Model
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(api_key="k", base_url=URL)
    else:
        from pydantic_ai.models.openai import OpenAIResponsesModel as Model
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(api_key="k", base_url=API)
    agent = Agent(Model("m", provider=provider), tools=[read_file])

    async def stream(_, events):
        async for _ in events:
            pass

    async def run():
        return (await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=None), event_stream_handler=stream)).output

    return asyncio.run(run())


def mistral():
    import json

    from mistralai.client import Mistral

    client = Mistral(api_key="k", server_url=URL)
    messages = [{"role": "user", "content": PROMPT}]
    more = {"none": {"tool_choice": "none"}, "single": {"parallel_tool_calls": False}}.get(ROW, {})
    while True:
        text, calls = "", {}
        for event in client.chat.stream(model="m", messages=messages, tools=[FUNCTION], **more):
            for choice in event.data.choices:
                text += choice.delta.content or ""
                for c in choice.delta.tool_calls or []:
                    call = calls.setdefault(c.index, {"id": c.id, "name": c.function.name, "arguments": ""})
                    call["arguments"] += c.function.arguments
        permitted(calls)
        if not calls:
            return text
        messages.append({"role": "assistant", "content": text, "tool_calls": [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls.values()
        ]})
        for c in calls.values():
            result = read_file(**json.loads(c["arguments"]))
            messages.append({"role": "tool", "tool_call_id": c["id"], "name": c["name"], "content": result})


def ollama():
    import ollama as sdk

    client = sdk.Client(host=URL or None)
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        text, thinking, calls = "", "", []
        for part in client.chat(model="m", messages=messages, tools=[FUNCTION], stream=True, think=True):
            text += part.message.content or ""
            thinking += part.message.thinking or ""
            calls += part.message.tool_calls or []
        if not calls:
            return text
        messages.append({"role": "assistant", "content": text, "thinking": thinking, "tool_calls": calls})
        for c in calls:
            messages.append({"role": "tool", "tool_name": c.function.name, "content": read_file(**c.function.arguments)})


WAYS = [langchain, claude_agent_sdk, openai_agents, google_genai, google_adk, strands, agno, haystack, pydantic_ai, mistral, ollama]
print(next(way for way in WAYS if WAY.replace("-", "_").startswith(way.__name__))())
