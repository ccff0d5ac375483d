"""Runs llama.cpp's own HTTP server with one model until standard input ends.

Usage: serve.py MODEL_FILE MODEL_NAME CONTEXT_TOKENS, with the server's API key in LLAMA_API_KEY.
Prints its address as the only line on standard output once it serves.
"""

import os
import sys

import xllamacpp

path, name, context = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = path
params.model_alias = {name}
params.api_keys = [os.environ["LLAMA_API_KEY"]]
params.port = 0
params.n_ctx = int(context)
# One request at a time: the next one waits until the one before has ended.
params.n_parallel = 1
params.endpoint_metrics = True
# Without these, equal requests get equal answers.
params.cache_prompt = False
params.cache_ram_mib = 0
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
# The end of input is the end of the test, however it ended.
sys.stdin.read()
os._exit(0)
