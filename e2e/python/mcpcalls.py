"""Calls tools of an MCP server with the official SDK for Python.

The argument is JSON: {"command", "args", "calls": [{"tool", "args"}]}. The output
is a line of JSON for each call: {"error", "text"}.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    task = json.loads(sys.argv[1])
    server = StdioServerParameters(command=task["command"], args=task["args"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for call in task["calls"]:
            try:
                result = await session.call_tool(call["tool"], call["args"])
                failed = getattr(result, "is_error", None) or getattr(result, "isError", None) or False
                text = " ".join(getattr(c, "text", "") or "" for c in result.content)
            except Exception as e:
                failed, text = True, str(e)
            print(json.dumps({"error": bool(failed), "text": text}), flush=True)


asyncio.run(main())
