"""An agent of LangChain with one tool, declared by a JSON Schema.

usage: langchain.py URL PROMPT
"""

import sys

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

URL, PROMPT = sys.argv[1:]
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


def read_file(path):
    print("call", path, flush=True)
    with open(path) as f:
        return f.read()


tool = StructuredTool(name="read_file", description="Read a file.", args_schema=SCHEMA, func=read_file)
model = ChatOpenAI(model="m", base_url=URL + "/v1", api_key="k", timeout=60)
agent = create_agent(model, tools=[tool])
print(agent.invoke({"messages": [("user", PROMPT)]})["messages"][-1].content)
