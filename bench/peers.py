"""regard beside llama.cpp on the same file: peers.py REGARD MODEL.gguf TEXTFILE [--rounds N] [--threads N]

Runs both in turn, several rounds, and prints one JSON line: medians of tokens per second and the median of the ratios of
each round. Needs llama-cpp-python 0.3.36 built natively (CMAKE_ARGS=-DGGML_NATIVE=ON) in the Python that runs this.
"""
import argparse, json, statistics, subprocess, time
from llama_cpp import Llama

args = argparse.ArgumentParser(description=__doc__)
args.add_argument("regard"); args.add_argument("model"); args.add_argument("text")
args.add_argument("--rounds", type=int, default=7); args.add_argument("--threads", type=int, default=2)
args = args.parse_args()

llama = Llama(args.model, n_ctx=2048, n_threads=args.threads, n_threads_batch=args.threads, n_batch=512, n_ubatch=512,
              flash_attn=True, verbose=False)
ids = llama.tokenize(open(args.text, "rb").read())[:512]
assert len(ids) == 512, "the text is too short: 512 tokens are needed"

def timed(work):
    start = time.perf_counter(); work(); return time.perf_counter() - start

def llama_prefill():
    llama.reset(); return len(ids) / timed(lambda: llama.eval(ids))

def llama_decode(n=64):
    llama.reset(); llama.eval(ids[:16])
    return n / timed(lambda: [llama.eval([ids[16 + i]]) for i in range(n)])

def regard(prompt, n):
    done = subprocess.run([args.regard, "generate", args.model, "--ids", ",".join(map(str, prompt)), "-n", str(n), "--json",
                           "--threads", str(args.threads)], check=True, capture_output=True)
    return json.loads(done.stdout)

llama_prefill(); llama_decode()
rows = []
for _ in range(args.rounds):
    rows.append((llama_prefill(), regard(ids, 1)["prefill_tokens_per_second"],
                 llama_decode(), regard(ids[:16], 64)["decode_tokens_per_second"]))
median = lambda values: round(statistics.median(values), 2)
print(json.dumps({"peer": "llama.cpp", "prompt_tokens": len(ids), "threads": args.threads,
                  "prefill": {"llama.cpp": median([r[0] for r in rows]), "regard": median([r[1] for r in rows]),
                              "ratio": median([r[1] / r[0] for r in rows])},
                  "decode": {"llama.cpp": median([r[2] for r in rows]), "regard": median([r[3] for r in rows]),
                             "ratio": median([r[3] / r[2] for r in rows])}}))
