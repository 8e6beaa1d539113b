"""Serve a GGUF file with the server of llama.cpp, where none is installed.

    pip install xllamacpp
    python3 tools/eval/llama_server.py MODEL.gguf 8080 [OPTION=VALUE ...]

The wheel has llama.cpp's own server in it. The options are the fields of its
parameters: use_jinja=0 is llama-server without --jinja, and
force_pure_content_parser=1 is --skip-chat-parsing. THREADS sets the threads (1).
"""

import os
import signal
import sys

import xllamacpp

p = xllamacpp.CommonParams()
p.model.path = os.path.abspath(sys.argv[1])
p.hostnames, p.port = ["127.0.0.1"], int(sys.argv[2])
p.n_ctx, p.n_parallel, p.n_gpu_layers, p.endpoint_props = 8192, 1, 0, True
for cpu in (p.cpuparams, p.cpuparams_batch):
    cpu.n_threads, cpu.poll = int(os.environ.get("THREADS", "1")), 0
for option in sys.argv[3:]:
    name, _, value = option.partition("=")
    setattr(p, name, type(getattr(p, name))(int(value) if value.isdigit() else value))

server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
signal.pause()
