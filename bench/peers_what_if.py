"""regard's sweeps beside TransformerLens on the same file: peers_what_if.py REGARD FOLDER FILE.gguf TEXTFILE [--rounds N]

The peer does one patched forward pass per what-if; regard's sweep does many at once. In turn, several rounds: ten patched
passes of TransformerLens, `zero z` over head and row at one layer (another one each round, spread over the model), and all
of `block edge row=-1` over layer, head and key. Printed: how much more time per what-if the peer takes, and how far the
answers are apart. Needs torch, transformers, transformer-lens and gguf in the Python that runs this; FOLDER holds FILE.gguf, and a
float32 copy of its weights is put beside it.
"""
import argparse, json, os, statistics, subprocess, time
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformer_lens.model_bridge import TransformerBridge

args = argparse.ArgumentParser(description=__doc__)
args.add_argument("regard"); args.add_argument("folder"); args.add_argument("file"); args.add_argument("text")
args.add_argument("--rounds", type=int, default=5); args.add_argument("--threads", type=int, default=2)
args.add_argument("--tokens", type=int, default=100)
args = args.parse_args()
torch.set_num_threads(args.threads); torch.set_grad_enabled(False)

plain = os.path.join(args.folder, "float32")
if not os.path.exists(os.path.join(plain, "config.json")):
    tokenizer = AutoTokenizer.from_pretrained(args.folder, gguf_file=args.file)
    loaded = AutoModelForCausalLM.from_pretrained(args.folder, gguf_file=args.file, dtype=torch.float32)
    keep = {k: v for k, v in loaded.config.to_dict().items() if k not in ("quantization_config", "_name_or_path", "model_type")}
    model = LlamaForCausalLM(LlamaConfig(**keep)); model.load_state_dict(loaded.state_dict(), strict=False); model.tie_weights()
    model.save_pretrained(plain); tokenizer.save_pretrained(plain)
tokenizer = AutoTokenizer.from_pretrained(plain)
peer = TransformerBridge.boot_transformers(plain, device="cpu", dtype=torch.float32, tokenizer=tokenizer)
T = args.tokens
ids = tokenizer(open(args.text).read(), return_tensors="pt").input_ids[:, :T]
layers, heads = peer.cfg.n_layers, peer.cfg.n_heads
first, second = peer(ids)[0, -1].topk(2).indices.tolist()
difference = lambda logits: (logits[0, -1, first] - logits[0, -1, second]).item()
base = difference(peer(ids))

def zeroed(layer, head, row):
    def hook(z, hook):
        z = z.clone(); z.view(*z.shape[:2], heads, -1)[:, row, head] = 0; return z
    return difference(peer.run_with_hooks(ids, fwd_hooks=[("blocks.%d.attn.hook_z" % layer, hook)])) - base

def sweep(edit, each):
    done = subprocess.run([args.regard, "sweep", os.path.join(args.folder, args.file), "--ids", ",".join(map(str, ids[0].tolist())),
                           "--edit", edit, "--each", each, "--metric", "diff %d %d" % (first, second), "--threads", str(args.threads),
                           "--json", "--quiet"], check=True, capture_output=True)
    return json.loads(done.stdout)

zeroed(0, 0, 0)
ratios = {"zero z": [], "block edge": []}; apart = 0; seconds_of_peer = []
for n in range(args.rounds):
    layer = (n * 2 + 1) * layers // (2 * args.rounds)  # slices spread over the layers
    start = time.perf_counter(); answers = [zeroed(layer, i % heads, i * T // 10) for i in range(10)]
    one = (time.perf_counter() - start) / 10; seconds_of_peer.append(one)
    z, edge = sweep("zero z layer=%d" % layer, "head,row"), sweep("block edge row=-1", "layer,head,key")
    for name, result in (("zero z", z), ("block edge", edge)):
        ratios[name].append((one, result["seconds"] / result["what_ifs"]))
    apart = max([apart] + [abs(z["effect"][i % heads][i * T // 10] - answers[i]) for i in range(10)])
# The layers' slices take different times; together they stand for the whole sweep.
whole = lambda pairs: round(sum(p for p, _ in pairs) / sum(r for _, r in pairs), 1)
print(json.dumps({"peer": "transformer_lens", "tokens": T, "threads": args.threads,
                  "peer_seconds_per_what_if": round(statistics.median(seconds_of_peer), 4),
                  "zero_z_ratio": whole(ratios["zero z"]), "block_edge_ratio": whole(ratios["block edge"]),
                  "largest_difference_of_effects": apart}))
