import asyncio
import enum
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import unittest
import unittest.mock

import toolmend
from toolmend import _child
from toolmend._stack import drive

TOOL = {"name": "get", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}}
TOOLS = [TOOL]
logging.getLogger("toolmend").addHandler(logging.NullHandler())
USER = [{"role": "user", "content": "hi"}]
POSIX = unittest.skipUnless(hasattr(os, "fork"), "needs fork and signals")
PROC = unittest.skipUnless(os.path.exists("/proc/self"), "needs /proc")


def turn(*arguments, n=1):
    calls = [{"id": f"c{n}{i}", "type": "function", "index": i, "function": {"name": "get", "arguments": a}} for i, a in enumerate(arguments)]
    return {"role": "assistant", "content": None, "signature": f"s{n}", "tool_calls": calls}


class Model:
    """Answers one after the other; exceptions are raised."""

    def __init__(self, *turns):
        self.turns, self.asks = list(turns), []

    def __call__(self, messages, tools):
        self.asks.append(messages)
        answer = self.turns.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return turn(*answer, n=len(self.asks))

    async def later(self, messages, tools):
        await asyncio.sleep(0)
        return self(messages, tools)


def args(message):
    return [json.loads(c["function"]["arguments"]) for c in message["tool_calls"]]


def gone(pid):
    for _ in range(50):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().split()[2] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


class Steps(unittest.TestCase):
    def test_valid_is_the_models_message(self):
        message = toolmend.Stack()(Model(['{"n": 5}']))(USER, TOOLS)
        self.assertEqual(message, turn('{"n": 5}'))
        self.assertEqual(message.report["status"], "valid")

    def test_repaired_with_report_and_log(self):
        reports, model = [], Model(['{"n": "5"}'])
        with self.assertLogs("toolmend", logging.INFO) as logs:
            message = toolmend.Stack(on_report=reports.append)(model)(USER, TOOLS)
        self.assertEqual((args(message), len(model.asks)), ([{"n": 5}], 1))
        self.assertEqual((message["signature"], message["tool_calls"][0]["index"]), ("s1", 0))
        self.assertEqual(reports, [message.report])
        self.assertEqual(reports[0]["attempts"][0]["verdicts"][0]["changes"][0]["by"], "mend.coerce")
        self.assertEqual(logs.output, ["INFO:toolmend:attempt 1: get was repaired: n: mend.coerce"])

    def test_asked_again(self):
        model = Model(['{"m": true}', '{"n": 7}'], ['{"n": 5}', '{"n": 7}'])
        self.assertEqual(args(toolmend.Stack()(model)(USER, TOOLS)), [{"n": 5}, {"n": 7}])
        user, failed, first, second = model.asks[1]
        self.assertEqual((user, failed["signature"], failed["tool_calls"][1]["index"]), (USER[0], "s1", 1))
        self.assertIn("required property is missing", first["content"])
        self.assertIn("not executed", second["content"])
        self.assertEqual(first["tool_call_id"], "c10")

    def test_exhausted(self):
        with self.assertRaises(toolmend.InvalidToolCall) as e:
            toolmend.Stack(attempts=2)(Model(['{"x": 1}'], ['{"x": 2}']))(USER, TOOLS)
        self.assertEqual(e.exception.message, turn('{"x": 2}', n=2))
        self.assertEqual([i["code"] for i in e.exception.verdicts[0]["issues"]], ["required", "additionalProperties"])
        self.assertEqual((len(e.exception.replies), len(e.exception.report["attempts"])), (1, 2))

    def test_settings_reach_the_model(self):
        seen = []

        def call(messages, tools, *, max_tokens=None, tool_choice=None, mine=None):
            seen.append((max_tokens, tool_choice, mine))
            cut = {"choices": [{"message": turn('{"n":'), "finish_reason": "length"}], "usage": {"prompt_tokens": 7}}
            return cut if len(seen) == 1 else turn('{"n": 1}')

        message = toolmend.Stack()(call)(USER, TOOLS, max_tokens=100, mine=3)
        self.assertEqual((seen, message.usage["input"]), ([(100, None, 3), (200, None, 3)], 7))

    def test_settings_of_chat(self):
        seen = []

        def call(messages, tools, **settings):
            seen.append(settings)
            return {"choices": [{"message": turn('{"n": 1}'), "finish_reason": "stop" if len(seen) > 1 else "length"}]}

        toolmend.Stack()(call)(USER, TOOLS, stop="END", max_completion_tokens=100)
        self.assertEqual(seen, [{"stop": "END", "max_completion_tokens": n} for n in (100, 200)])
        for choice in ({"type": "auto"}, {"type": "required"}, {"type": "function", "function": {"name": "get"}}):
            self.assertEqual(args(toolmend.Stack()(call)(USER, TOOLS, tool_choice=choice)), [{"n": 1}])

    def test_a_custom_tool(self):
        run = {"role": "assistant", "content": None, "tool_calls": [{"id": "r", "type": "custom", "custom": {"name": "run", "input": "ls {"}}]}
        history, tools, asks = [*USER, run, {"role": "tool", "tool_call_id": "r", "content": "a"}], [TOOL, {"type": "custom", "custom": {"name": "run"}}], []

        def call(messages, tools, tool_choice):
            asks.append((messages, len(tools), tool_choice))
            return turn('{"n": 1}') if len(asks) == 1 else {**run, "signature": "s2"}

        choice = {"type": "custom", "custom": {"name": "run"}}
        message = toolmend.Stack()(call)(history, tools, tool_choice=choice)
        self.assertEqual(message["signature"], "s2")
        self.assertEqual([c["custom"]["input"] for c in message["tool_calls"]], ["ls {"])
        self.assertEqual([(messages[:3], *rest) for messages, *rest in asks], [(history, 2, choice)] * 2)

    def test_no_tool_is_allowed(self):
        choice, model = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}, Model(['{"n": 5}'])
        with self.assertRaises(toolmend.InvalidToolCall) as e:
            toolmend.Stack(attempts=1)(lambda messages, tools, tool_choice: model(messages, tools))(USER, TOOLS, tool_choice=choice)
        self.assertEqual([i["code"] for i in e.exception.verdicts[0]["issues"]], ["tool_choice"])

    def test_tools_that_change_in_place(self):
        tool, stack = json.loads(json.dumps(TOOL)), toolmend.Stack()
        self.assertEqual(args(stack(Model(['{"n": "1"}']))(USER, [tool])), [{"n": 1}])
        tool["parameters"]["properties"]["n"]["type"] = "string"
        self.assertEqual(args(stack(Model(['{"n": "1"}']))(USER, [tool])), [{"n": "1"}])

    def test_a_tool_with_an_enum_of_a_function(self):
        class Unit(str, enum.Enum):
            NIGHTS = "nights"

        tool = {"name": "get", "parameters": {"type": "object", "properties": {"unit": {"enum": list(Unit)}}}}
        self.assertEqual([toolmend.validate(tool, {"unit": unit}).ok for unit in ("nights", "days")], [True, False])

    def test_an_object_of_an_sdk(self):
        class Completion:
            def model_dump(self, exclude_none):
                return {"choices": [{"message": turn('{"n": "1"}'), "finish_reason": "tool_calls"}]}

        self.assertEqual(args(toolmend.Stack()(lambda messages, tools: Completion())(USER, TOOLS)), [{"n": 1}])

    def test_the_models_own_exception(self):
        for own in (KeyError("mine"), toolmend.Invalid("of a rule")):
            with self.assertRaises(type(own)) as e:
                toolmend.Stack()(Model(own))(USER, TOOLS)
            self.assertIs(e.exception, own)

    def test_an_exception_without_a_text(self):
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError

        async def model(messages, tools):
            raise Odd

        async def main():
            with self.assertRaises(Odd):
                await asyncio.wait_for(toolmend.Stack()(model)(USER, TOOLS), 20)

        asyncio.run(main())

    def test_unknown_options(self):
        for options, want in (({"atempts": 1}, "unknown key atempts"), ({"listen": "x"}, "for the gateway only")):
            for _ in range(2):
                with self.assertRaisesRegex(toolmend.ToolmendError, want):
                    toolmend.Stack(**options)(Model(['{"n": 5}']))(USER, TOOLS)

    def test_stream(self):
        def ask(a):
            for piece in ("Let ", "me ", "see."):
                a.emit("text", piece)
            arguments = '{"n": "5"}' if a.n > 1 else '{"x": "5"}'
            return {"message": {"role": "assistant", "tool_calls": [{"id": f"c{a.n}", "name": "get", "arguments": arguments}]}}

        seen = []
        drive(toolmend.Stack().step({"messages": [{"role": "user", "parts": [{"text": "hi"}]}]}, TOOLS, ask, seen.append))
        self.assertEqual([e["kind"] for e in seen], ["text"] * 3 + ["reset"] + ["text"] * 3 + ["tool_call"])
        self.assertEqual(json.loads(seen[-1]["call"]["arguments"]), {"n": 5})

    def test_a_call_in_streamed_text_needs_the_messages(self):
        text, seen = '<tool_call>{"name": "get", "arguments": {"n": 5}}</tool_call>', []

        def ask(a):
            for i in range(0, len(text), 7):
                a.emit("text", text[i : i + 7])
            return {"message": {"role": "assistant", "parts": [{"text": text}]}}

        for said, want in (("hi", [("get", '{"n": 5}')]), (f"What does {text} mean?", [])):
            request = {"messages": [{"role": "user", "parts": [{"text": said}]}]}
            end = drive(toolmend.Stack(rescue=["auto"]).step(request, TOOLS, ask, seen.append))
            message = end["response"]["message"] if "response" in end else {}
            self.assertEqual([(c["name"], c["arguments"]) for c in message.get("tool_calls", ())], want)

    def test_record(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "calls.jsonl")
            toolmend.Stack(record=file)(Model(['{"n": "5"}']))(USER, TOOLS)
            out = subprocess.run([sys.executable, "-m", "toolmend", "check", file], capture_output=True, text=True)
            self.assertEqual(out.returncode, 1, out.stderr)
            self.assertIn("get", out.stdout)


class Rules(unittest.TestCase):
    def check(self, rules, value, want):
        model = Model([json.dumps({"n": value})], ['{"n": 5}'])
        self.assertEqual(args(toolmend.Stack(rules=rules)(model)(USER, TOOLS)), [{"n": 5}])
        self.assertIn(want, model.asks[1][-1]["content"])

    def test_by_tool_and_argument(self):
        def raises(call):
            if call.args["n"] > 99:
                raise toolmend.Invalid("n is too large", "/n")

        self.check({"get": lambda call: "n must be below 100" if call.args["n"] > 99 else None}, 500, "n must be below 100")
        self.check({"*": raises}, 500, "[n] n is too large")
        self.check({"get": {"n": lambda n, call: "not 500" if n == 500 and call.name == "get" else None}}, 500, "[n] not 500")
        self.check({"get": {"n": lambda n, call: [{"message": "odd"}] if n == 500 else []}}, 500, "[n] odd")

    def test_async_beside_sync(self):
        async def rule(call):
            await asyncio.sleep(0)
            return "too large" if call.args["n"] > 99 else None

        model = Model(['{"n": 500}'], ['{"n": 5}'])
        self.assertEqual(args(asyncio.run(toolmend.Stack(rules={"get": rule})(model.later)(USER, TOOLS))), [{"n": 5}])

    def test_a_pointer_that_is_not_a_text(self):
        async def rule(call):
            if call.args["n"] > 99:
                raise toolmend.Invalid("too large", pathlib.PurePosixPath("/n"))

        model = Model(['{"n": 500}'], ['{"n": 5}'])
        step = asyncio.wait_for(toolmend.Stack(rules={"get": rule})(model.later)(USER, TOOLS), 20)
        self.assertEqual(args(asyncio.run(step)), [{"n": 5}])
        self.assertIn("[n] too large", model.asks[1][-1]["content"])

    def test_could_not_decide(self):
        own = LookupError("no database")

        def broken(call):
            raise own

        with self.assertRaises(toolmend.StepError) as e:
            toolmend.Stack(rules={"*": broken})(Model(['{"n": 5}']))(USER, TOOLS)
        self.assertEqual((e.exception.code, e.exception.__cause__), ("rule_failed", own))

    def test_a_slow_rule_is_stopped(self):
        stopped = []

        async def slow(call):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.append(call.name)
                raise

        with self.assertRaises(toolmend.StepError) as e:
            asyncio.run(toolmend.Stack(rules={"*": slow}, rule_timeout=0.05)(Model(['{"n": 5}']).later)(USER, TOOLS))
        self.assertEqual((e.exception.code, stopped), ("rule_failed", ["get"]))

    def test_validate(self):
        stack = toolmend.Stack(rules={"get": {"n": lambda n, call: "at most 99" if n > 99 else None}})
        v = stack.validate(TOOL, '{"n": "5"}')
        self.assertEqual((v.ok, v.args, v.changes[0]["by"], v.reply), (True, {"n": 5}, "mend.coerce", ""))
        v = stack.validate({"type": "function", "function": TOOL}, {"n": 500})
        self.assertEqual((v.ok, v.issues[0]["pointer"]), (False, "/n"))
        self.assertIn("at most 99", v.reply)
        self.assertFalse(toolmend.validate({"name": "get", "input_schema": TOOL["parameters"]}, "[").ok)
        self.assertTrue(asyncio.run(stack.avalidate(TOOL, {"n": 1})).ok)


class Processes(unittest.TestCase):
    def test_500_tasks_and_200_threads(self):
        stack = toolmend.Stack()

        async def main():
            return await asyncio.gather(*[stack(Model(['{"x": 1}'], [f'{{"n": "{i}"}}']).later)(USER, TOOLS) for i in range(500)])

        self.assertEqual([args(m)[0]["n"] for m in asyncio.run(main())], list(range(500)))
        got = {}

        def work(i):
            got[i] = args(stack(Model(['{"x": 1}'], [f'{{"n": "{i}"}}']))(USER, TOOLS))[0]["n"]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(200)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(got, {i: i for i in range(200)})

    def test_a_slow_call_blocks_no_other_step(self):
        stack, release = toolmend.Stack(), threading.Event()

        def slow(messages, tools):
            release.wait(20)
            return turn('{"n": 1}')

        waiting = threading.Thread(target=lambda: stack(slow)(USER, TOOLS))
        waiting.start()
        self.assertEqual(args(stack(Model(['{"n": "5"}']))(USER, TOOLS)), [{"n": 5}])
        release.set()
        waiting.join()

    def test_cancel(self):
        async def main():
            stack, started, ended = toolmend.Stack(), asyncio.Event(), []

            async def call(messages, tools):
                started.set()
                try:
                    await asyncio.sleep(100)
                except asyncio.CancelledError:
                    ended.append(True)
                    raise

            task = asyncio.create_task(stack(call)(USER, TOOLS))
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            self.assertEqual(ended, [True])
            self.assertEqual(args(await stack(Model(['{"n": "5"}']).later)(USER, TOOLS)), [{"n": 5}])

        asyncio.run(main())

    def test_a_function_that_is_cancelled_ends_its_step(self):
        async def cancelled(*_):
            raise asyncio.CancelledError("mine")

        async def main():
            with self.assertRaisesRegex(asyncio.CancelledError, "mine"):
                await asyncio.wait_for(toolmend.Stack()(cancelled)(USER, TOOLS), 20)
            with self.assertRaises(toolmend.StepError) as e:
                await asyncio.wait_for(toolmend.Stack(rules={"*": cancelled})(Model(['{"n": 5}']).later)(USER, TOOLS), 20)
            self.assertEqual((e.exception.code, type(e.exception.__cause__)), ("rule_failed", asyncio.CancelledError))

        asyncio.run(main())

    @POSIX
    def test_restart_after_a_crash(self):
        stack = toolmend.Stack()

        def killed(messages, tools):
            process = _child.child().process
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return turn('{"n": 1}')

        with self.assertRaisesRegex(toolmend.Ended, "code -9"):
            stack(killed)(USER, TOOLS)
        for _ in range(10):  # a crash between two steps is not seen
            self.assertEqual(args(stack(Model(['{"n": "5"}']))(USER, TOOLS)), [{"n": 5}])
            os.kill(_child.child().process.pid, signal.SIGKILL)

    @POSIX
    def test_a_child_that_ends_within_a_frame(self):
        import tempfile

        for line, want in (('{"type":"resu', "code 3"), ('{"type":"resu\n', "not a frame"), ("{}\n", "not a frame")):
            with tempfile.TemporaryDirectory() as folder:
                fake = os.path.join(folder, "toolmend")
                with open(fake, "w") as f:
                    f.write(f"#!{sys.executable}\nimport sys\n[sys.stdin.readline() for _ in '12']\nsys.stdout.write({line!r})\nsys.stdout.flush()\nsys.exit(3)")
                os.chmod(fake, 0o700)
                raised, stack = [], toolmend.Stack(binary=fake)

                def step():
                    try:
                        stack.validate(TOOL, {})
                    except toolmend.Ended as e:
                        raised.append(str(e))

                thread = threading.Thread(target=step, daemon=True)
                thread.start()
                thread.join(20)
                self.assertEqual(len(raised), 1, "the step hangs")
                self.assertRegex(raised[0], want)

    @POSIX
    def test_fork(self):
        stack = toolmend.Stack()
        stack.validate(TOOL, {})
        before, pid = _child.child().process.pid, os.fork()
        if pid == 0:
            code = 1
            try:
                ok = args(stack(Model(['{"n": "6"}']))(USER, TOOLS)) == [{"n": 6}]
                code = 0 if ok and _child.child().process.pid != before else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(_child.child().process.pid, before)
        self.assertEqual(args(stack(Model(['{"n": "5"}']))(USER, TOOLS)), [{"n": 5}])

    @PROC
    def test_the_child_ends_with_its_parent(self):
        for fork in ("", "if os.fork() == 0: time.sleep(9); os._exit(0)\n"):
            script = f"import os, time, toolmend\nfrom toolmend import _child\ntoolmend.validate({{'name': 'a'}}, {{}})\n{fork}print(_child.child().process.pid, flush=True); os.kill(os.getpid(), 9)"
            with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as p:
                self.assertTrue(gone(int(p.stdout.readline())))
                p.stdout.close()

    @PROC
    def test_no_environment_and_no_terminal(self):
        toolmend.validate(TOOL, {})
        pid = _child.child().process.pid
        with open(f"/proc/{pid}/environ") as f:
            self.assertEqual(f.read(), "")
        self.assertEqual({os.readlink(f"/proc/{pid}/fd/{n}").split(":")[0] for n in (0, 1, 2)}, {"pipe"})
        self.assertNotEqual(os.getpgid(pid), os.getpgrp())

    def test_another_release_is_refused(self):
        script = "import toolmend, toolmend._child as c\nc.VERSION = 'v9.8.7'\nfor _ in range(2):\n try: toolmend.validate({'name': 'a'}, {})\n except toolmend.ToolmendError as e: print(type(e).__name__, e)"
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        line = "ToolmendError toolmend: this toolmend is .*, and the package is v9.8.7: install both of the same release\n"
        self.assertRegex(out.stdout, f"^{line}{line}$", out.stderr)

    def test_no_binary(self):
        with self.assertRaisesRegex(toolmend.ToolmendError, "does not start"):
            toolmend.Stack(binary=os.path.join("no", "where")).validate(TOOL, {})

    def test_the_wheels_own_binary_is_the_first(self):
        def which(name, path=None):  # as on Windows, where the current directory is the first for a bare name
            return name if os.path.dirname(name) else os.path.join("current", name)

        with unittest.mock.patch.dict(os.environ), unittest.mock.patch.object(_child.shutil, "which", which):
            os.environ.pop("TOOLMEND_BIN", None)
            self.assertEqual(os.path.dirname(_child.find_binary.__wrapped__()), sysconfig.get_path("scripts"))

    def test_threads_do_not_use_sysconfig(self):  # the first use of it is not safe for them
        with unittest.mock.patch.object(_child, "sysconfig", None), unittest.mock.patch.dict(os.environ, {"TOOLMEND_BIN": "x"}):
            self.assertEqual(_child.find_binary.__wrapped__(), "x")

    def test_a_model_is_not_called_again_after_a_crash(self):
        class Crashed:  # its question and its end come at once
            routes, refused, starts = {}, False, 0

            def register(self, route):
                self.starts += 1
                route({"type": "ask", "n": 1})
                route({"type": "ended", "message": "gone"})

            def send(self, frame):
                pass

        child = Crashed()
        with unittest.mock.patch.object(_child, "child", lambda binary: child), self.assertRaises(toolmend.Ended):
            asyncio.run(asyncio.wait_for(toolmend.Stack()(Model(['{"n": 5}']).later)(USER, TOOLS), 20))
        self.assertEqual(child.starts, 1)

    def test_many_tool_sets(self):
        stack = toolmend.Stack()
        for i in [*range(300), 0]:  # the child has dropped the first one
            tool = {"name": "get", "parameters": {"properties": {f"p{i}": {"type": "integer"}}}}
            self.assertEqual(stack.validate(tool, {f"p{i}": "1"}).args, {f"p{i}": 1})

    def test_many_stacks(self):
        stacks = [toolmend.Stack() for _ in range(300)]
        for stack in [*stacks, stacks[0]]:  # the child has dropped the first one
            self.assertEqual(stack.validate(TOOL, {"n": "1"}).args, {"n": 1})

    def test_one_bad_value_ends_one_step(self):
        stack = toolmend.Stack()
        with self.assertRaises(ValueError):
            stack(lambda m, t: {"choices": [{"message": turn()}], "usage": {"prompt_tokens": float("nan")}})(USER, TOOLS)
        with self.assertRaisesRegex(toolmend.StepError, "cannot unmarshal"):
            stack(lambda m, t: {"choices": [{"message": turn()}], "usage": {"prompt_tokens": "many"}})(USER, TOOLS)
        self.assertEqual(args(stack(Model(['{"n": "5"}']))([{"role": "user", "content": "\ud800"}], TOOLS)), [{"n": 5}])
        with self.assertRaisesRegex(toolmend.ToolmendError, "larger than the limit"):
            stack(Model(['{"x": 1}']))([{"role": "user", "content": "x" * (65 << 20)}], TOOLS)

    def test_messages_are_sent_if_they_are_needed(self):
        stack, sizes = toolmend.Stack(rules={"get": lambda call: None}), []
        child, history = _child.child(), [{"role": "user", "content": f"{i} " + "x" * 10_000} for i in range(20)]
        send = child.send
        child.send = lambda frame: (sizes.append(len(_child.encode(frame))), send(frame))[1]
        try:
            for _ in range(3):  # the same id each time: it is made unique
                history.append(stack(Model(['{"n": 1}']))(history, TOOLS))
            self.assertEqual(len({m["tool_calls"][0]["id"] for m in history[20:]}), 3)
            self.assertLess(sorted(sizes)[-3], 10_000)
            sizes.clear()
            message = stack(lambda m, t: {**turn('{"n": "1"}', n=9)})(history, TOOLS)
            self.assertEqual((args(message), max(sizes) < 3_000), ([{"n": 1}], True))
            model = Model(['{"x": 1}'], ['{"n": 1}'])
            stack(model)(history, TOOLS)
            self.assertEqual(model.asks[1][: len(history)], history)
            self.assertGreater(max(sizes), 200_000)
        finally:
            child.send = send

    def test_a_coroutine_in_a_thread(self):
        class Later:
            def __await__(self):
                yield

        with self.assertRaisesRegex(toolmend.StepError, "does not run in asyncio"):
            toolmend.Stack(rules={"*": lambda call: Later()})(Model(['{"n": 1}']))(USER, TOOLS)


if __name__ == "__main__":
    unittest.main()
