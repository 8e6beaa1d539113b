# Messages and tools as the protocol has them.

from __future__ import annotations

import base64
import json
from typing import Any

from ._child import Json


def joined(message: Json) -> str:
    return "".join(p.get("text", "") for p in message.get("parts") or () if not p.get("kind"))


def plain(s: Any) -> str:
    # An id, a name or arguments: bytes that are not UTF-8 come as base64.
    return base64.b64decode(s["base64"]).decode("utf-8", "replace") if isinstance(s, dict) else s or ""


def parsed(arguments: str) -> Any:
    # The arguments of a call, or their text if they are not JSON.
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def text_of_arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps({} if value is None else value)


def tool_to_wire(tool: Any) -> Json:
    # A tool in the form of OpenAI, Anthropic, MCP or the protocol.
    f = tool.get("function") or tool.get("custom") or tool
    parameters = next((f[k] for k in ("parameters", "input_schema", "inputSchema") if f.get(k) is not None), None)
    name = f.get("name") or tool.get("type", "")
    if parameters is None and tool.get("type", "function") != "function":
        return {"name": name, "kind": "custom" if tool["type"] == "custom" else "hosted"}  # free text; or the provider runs it
    wire = {"name": name, "description": f.get("description") or "", "parameters": parameters or {"type": "object"}}
    return wire | {k: tool[k] for k in ("destructive",) if k in tool}
