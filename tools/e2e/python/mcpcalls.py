"""Calls tools of an MCP server with the official SDK for Python, in the newest
version of the protocol that the server speaks.

The argument is JSON: {"command", "args", "calls": [{"tool", "args"}]}. The output
is a line of JSON for each call: {"error", "text"}. The version is on standard error.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main():
    task = json.loads(sys.argv[1])
    server = StdioServerParameters(command=task["command"], args=task["args"])
    async with Client(server) as client:
        print("version", client.protocol_version, file=sys.stderr)
        for call in task["calls"]:
            try:
                result = await client.call_tool(call["tool"], call["args"])
                failed, text = result.is_error, " ".join(getattr(c, "text", "") or "" for c in result.content)
            except Exception as e:
                failed, text = True, str(e)
            print(json.dumps({"error": bool(failed), "text": text}), flush=True)


asyncio.run(main())
