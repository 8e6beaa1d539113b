"""The child process `toolmend lib`: one for each Python process, started when it is needed."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import sysconfig
import threading
from typing import Any, Callable, Sequence

from ._version import VERSION

PROTOCOL = [1]
MAX_LINE = 64 << 20
_SMALL = 100  # bytes of a message that is not worth a name
_REMEMBERED = 24 << 20  # bytes of the messages whose names are kept: fewer than the session remembers


class ToolmendError(Exception):
    """The base of the errors of this package."""


class Ended(ToolmendError):
    """The child process ended during the step. The next step starts another one."""


@functools.lru_cache(None)
def find_binary() -> str:
    """Returns the path of the binary: TOOLMEND_BIN, or the wheel's own, or one on the path."""
    name = "toolmend.exe" if sys.platform == "win32" else "toolmend"
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    beside = [p for p in (os.path.join(f, name) for f in folders) if os.path.exists(p)]
    found = os.environ.get("TOOLMEND_BIN") or (beside[0] if beside else shutil.which(name))
    if not found:
        raise ToolmendError(f"toolmend: {name} is not in {folders[0]}: install the package toolmend again, or set TOOLMEND_BIN")
    return found


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def dumps(value: Any) -> bytes:
    return _encode(value).encode()


def _key(m: dict) -> Any:
    """A key with all that a message holds, or None. It is cheap, because a str keeps its hash."""
    try:
        key = tuple([(k, v) if type(v) is not list else (k, *[tuple(x.items()) for x in v]) for k, v in m.items()])
        hash(key)
        return key
    except (AttributeError, TypeError):
        return None


class Inbox:
    """The frames for one request, for a thread that waits or for a task of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None):
        self.loop = loop
        self.frames: Any = queue.SimpleQueue() if loop is None else asyncio.Queue()


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
        self.ids = itertools.count(1)
        self.writing = threading.Lock()
        self.opening = threading.Lock()
        self.inboxes: dict[int, Any] = {}
        self.known: dict[Any, Any] = {}  # stacks and tool sets that were sent, with the error of their frame
        self.names: dict[Any, bytes] = {}  # of messages that were sent
        self.size = 0  # of these messages
        self.ended: str | None = None
        self.refused = False  # another child would end the same way
        self.send({"type": "hello", "versions": PROTOCOL, "release": VERSION})
        threading.Thread(target=self._read, name="toolmend", daemon=True).start()

    def send(self, frame: dict, messages: Sequence[bytes] | None = None) -> None:
        line = dumps(frame)
        if messages is not None:
            line = line[:-1] + b',"messages":[' + b",".join(messages) + b"]}"
        line += b"\n"
        if len(line) > MAX_LINE:
            raise ToolmendError(f"toolmend: a step of {len(line)} bytes is larger than the limit of {MAX_LINE}")
        with self.writing:
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self.process.stdin.fileno(), view) :]
            except (OSError, ValueError):
                pass  # the reader reports the end

    def named(self, messages: Sequence[dict], whole: bool) -> list[bytes]:
        """Returns the texts of messages. Those that were sent before are their names, unless whole is set."""
        out, names = [], {} if whole else self.names
        for m in messages:
            key = _key(m)
            if key in names:
                out.append(names[key])
                continue
            text = dumps(m)
            out.append(text)
            if key is not None and len(text) >= _SMALL:
                if (size := self.size + len(text)) > _REMEMBERED:
                    self.names, size = {}, len(text)
                self.names[key], self.size = b'"' + hashlib.sha256(text).hexdigest()[:32].encode() + b'"', size
        return out

    def once(self, key: Any, frame: Callable[[], dict], then: Callable[[dict], None] | None = None) -> None:
        """Sends a frame that the child keeps, if it was not sent. It does not wait for the answer."""
        if key in self.known:
            return
        with self.opening:  # another thread sees the key once its frame is on its way
            if key not in self.known:
                self.send({"id": self.register(functools.partial(self._took, key, then)), **frame()})
                self.known[key] = None

    def _took(self, key: Any, then: Callable[[dict], None] | None, frame: dict) -> None:
        self.forget(frame["id"])
        if frame["type"] == "error":
            with self.opening:
                self.known[key] = frame["message"]
        elif then and frame["type"] == "result":
            then(frame)

    def register(self, inbox: Any) -> int:
        n = next(self.ids)
        self.inboxes[n] = inbox
        if self.ended is not None:  # the reader may be gone
            self.forget(n)
            raise Ended(self.ended)
        return n

    def forget(self, n: int) -> None:
        self.inboxes.pop(n, None)

    def _read(self) -> None:
        left, why = b"", ""
        while True:
            try:
                chunk = os.read(self.process.stdout.fileno(), 1 << 18)
            except (OSError, ValueError):
                chunk = b""
            if not chunk:
                break
            *lines, left = (left + chunk).split(b"\n") if b"\n" in chunk else (left + chunk,)
            frames = []
            for line in lines:
                if not line.startswith(b"{"):  # a crash
                    why += line.decode("utf-8", "replace")[: max(0, 2000 - len(why))] + "\n"
                    continue
                frame = json.loads(line)
                if "id" in frame:
                    frames.append(frame)
                elif frame["type"] == "error":
                    why, self.refused = frame["message"], "install both" in frame["message"]
            self._deliver(frames)
        self.process.wait()
        with self.writing:
            self._close()
        self.ended = why.strip() or f"toolmend: the child process ended with code {self.process.returncode}"
        self._deliver([{"type": "ended", "id": n, "message": self.ended} for n in list(self.inboxes)])

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass

    def _deliver(self, frames: list[dict]) -> None:
        by_loop: dict[Any, list] = {}
        for frame in frames:
            inbox = self.inboxes.get(frame["id"])
            if not isinstance(inbox, Inbox):
                if inbox is not None:  # None: the step was cancelled
                    inbox(frame)
            elif inbox.loop is None:
                inbox.frames.put(frame)
            else:
                by_loop.setdefault(inbox.loop, []).append((inbox.frames, frame))
        for loop, pairs in by_loop.items():
            try:
                loop.call_soon_threadsafe(lambda pairs=pairs: [q.put_nowait(f) for q, f in pairs])
            except RuntimeError:
                pass  # the loop is closed


_lock = threading.Lock()
_children: dict[str, Child] = {}


def child(binary: str | None = None) -> Child:
    """Returns the child of this process, or a new one if it has ended."""
    binary = binary or find_binary()
    running = _children.get(binary)
    if running is not None and running.ended is None:
        return running
    with _lock:
        running = _children.get(binary)
        if running is not None and running.refused and running.ended:
            raise ToolmendError(running.ended)
        if running is None or running.ended is not None:
            running = _children[binary] = Child(binary)
        return running


def _after_fork() -> None:
    """A forked process leaves the child to its parent, and starts its own."""
    global _lock
    _lock = threading.Lock()
    for inherited in _children.values():
        inherited._close()
        inherited.process.returncode = 0  # it is the parent's to wait for
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
