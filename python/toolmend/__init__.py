"""Toolmend validates every tool call inside the model step, around the model call that you have.

    stack = toolmend.Stack(attempts=3, rules={"book": {"nights": check}})
    call = stack(my_call)              # my_call(messages, tools) -> message
    message = call(messages, tools)    # its tool calls are valid

Adapters: toolmend.langchain, toolmend.pydantic_ai. The stack runs in a child process, the binary of this package.
"""

from ._child import Ended, ToolmendError
from ._stack import Ask, Call, Invalid, InvalidToolCall, Stack, StepError, Verdict

__all__ = ["Ask", "Call", "Ended", "Invalid", "InvalidToolCall", "Stack", "StepError", "ToolmendError", "Verdict", "validate"]

validate = Stack().validate
