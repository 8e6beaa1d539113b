"""An MCP server on stdio with sixty tools, which all return the content of the file."""

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}}},
    "required": ["ids"],
    "additionalProperties": False,
}
TOOLS = [{"name": f"tool_{n}", "description": f"Looks up birds by their ids, in book {n}.", "inputSchema": SCHEMA} for n in range(1, 61)]


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "big", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        ids = params.get("arguments", {}).get("ids")
        if isinstance(ids, list) and all(isinstance(i, int) for i in ids):
            return {"content": [{"type": "text", "text": "The bird is heron-4471."}]}
        return {"content": [{"type": "text", "text": "ids is not a list of integers"}], "isError": True}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
