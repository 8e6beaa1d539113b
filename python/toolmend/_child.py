# The child process `toolmend lib`: one for each Python process, started when it is needed.

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from typing import IO, Any, Callable, cast

from ._version import VERSION

MAX_LINE = 64 << 20
Json = dict[str, Any]  # an object of JSON


class ToolmendError(Exception):
    """The base of the errors of this package."""


class Ended(ToolmendError):
    """The child process ended during the step. The next step starts another one."""


# The folders of a wheel's programs. They are found during the import: the first use of sysconfig is not safe for threads.
FOLDERS = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]


@functools.lru_cache(None)
def find_binary() -> str:
    # Returns the path of the binary: TOOLMEND_BIN, or the wheel's own, or one on the path.
    name = "toolmend.exe" if sys.platform == "win32" else "toolmend"
    beside = filter(None, (shutil.which(os.path.join(f, name)) for f in FOLDERS))  # Windows looks for a bare name in the current directory first
    found = os.environ.get("TOOLMEND_BIN") or next(beside, None) or shutil.which(name)
    if not found:
        raise ToolmendError(f"toolmend: {name} is not in {FOLDERS[0]}: install the package toolmend again, or set TOOLMEND_BIN")
    return found


encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Child:
    def __init__(self, binary: str):
        env = {k: v for k, v in os.environ.items() if k.upper() == "SYSTEMROOT"}  # Windows starts no program without it
        group: dict[str, Any] = {"start_new_session": True}  # Ctrl-C is for the host
        if sys.platform == "win32":
            group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        try:
            self.process = subprocess.Popen([binary, "lib"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, env=env, **group)
        except OSError as e:
            raise ToolmendError(f"toolmend: {binary} does not start: {e}") from e
        self.stdin, self.stdout = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        self.ids = itertools.count(1)
        self.writing = threading.Lock()
        self.routes: dict[int, Callable[[Json], Any]] = {}  # of the requests that have not ended
        self.ended: str | None = None
        self.refused = False  # another child would end the same way
        self.send({"type": "hello", "versions": [1], "release": VERSION})
        threading.Thread(target=self._read, name="toolmend", daemon=True).start()

    def send(self, frame: Json) -> None:
        line = encode(frame).encode() + b"\n"
        if len(line) > MAX_LINE:
            raise ToolmendError(f"toolmend: a frame of {len(line)} bytes is larger than the limit of {MAX_LINE}")
        with self.writing, contextlib.suppress(OSError, ValueError):  # the reader reports the end
            view = memoryview(line)
            while view:
                view = view[os.write(self.stdin.fileno(), view) :]

    def register(self, route: Callable[[Json], Any]) -> int:
        n = next(self.ids)
        self.routes[n] = route
        if self.ended is not None:  # the reader may be gone
            self._deliver({"type": "ended", "id": n, "message": self.ended})
        return n

    def _read(self) -> None:
        why = ""
        try:
            for line in open(self.stdout.fileno(), "rb", 1 << 18, closefd=False):  # a lock of its own, which a fork does not inherit
                if not line.startswith(b"{"):  # a crash
                    why += line.decode("utf-8", "replace")[: max(0, 2000 - len(why))]
                    continue
                if not line.endswith(b"\n"):  # it ended within a frame
                    break
                frame = json.loads(line)
                if "id" in frame:
                    self._deliver(frame)
                elif frame["type"] == "error":
                    why, self.refused = frame["message"], "install both" in frame["message"]
        except Exception as e:
            why = why or f"toolmend: the child process sent a line that is not a frame: {type(e).__name__}"
            self.process.kill()
        finally:
            self.process.wait()
            with self.writing:
                self.close()
            self.ended = why.strip() or f"toolmend: the child process ended with code {self.process.returncode}"
            for n in list(self.routes):
                self._deliver({"type": "ended", "id": n, "message": self.ended})

    def _deliver(self, frame: Json) -> None:
        if (route := self.routes.get(frame["id"])) is not None:  # None: the step was cancelled
            with contextlib.suppress(RuntimeError):  # its event loop is closed
                route(frame)

    def close(self) -> None:
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


_lock = threading.Lock()
_children: dict[str, Child] = {}


def child(binary: str | None = None) -> Child:
    # Returns the child of this process, or a new one if it has ended.
    binary = binary or find_binary()
    with _lock:
        running = _children.get(binary)
        if running is None or running.ended is not None and not running.refused:
            running = _children[binary] = Child(binary)
        elif running.ended is not None:
            raise ToolmendError(running.ended)
        return running


def _after_fork() -> None:
    # A forked process leaves the child to its parent, and starts its own.
    global _lock
    _lock = threading.Lock()
    for inherited in _children.values():
        inherited.close()
        inherited.process.returncode = 0  # it is the parent's to wait for
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
