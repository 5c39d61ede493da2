"""How far a plain float32 evaluation is from the float64 goldens: plain_f32.py MODEL.gguf NAME -> plain_f32_NAME.json

NAME is that of the goldens: smollm2 or gemma3. The yardstick of law 1: regard may be at most twice as far from the float64
values as this is. It needs numpy and gguf; the weights are the stored values dequantised to float32. Per prompt and
quantity it writes the largest absolute error.
"""
import json, os, sys
import numpy as np
from gguf import GGUFReader, dequantize

f32 = np.float32
reader = GGUFReader(sys.argv[1])
field = lambda name, other=None: reader.fields[name].contents() if name in reader.fields or other is None else other
W = {t.name: dequantize(t.data, t.tensor_type).astype(f32).reshape([int(n) for n in reversed(t.shape)]) for t in reader.tensors}
arch = field("general.architecture")
gemma = arch == "gemma3"
L, H, G = (int(field(f"{arch}.{k}")) for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
eps, base = f32(field(f"{arch}.attention.layer_norm_rms_epsilon")), float(field(f"{arch}.rope.freq_base"))
D = W["blk.0.attn_q.weight"].shape[0] // H
window = [0 if not gemma or (l + 1) % 6 == 0 else int(field("gemma3.attention.sliding_window")) for l in range(L)]

def norm(x, w): return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=f32) + eps) * w

def rotate(x, cos, sin):
    if gemma:  # pairs (i, i + D/2)
        a, b = x[..., :D // 2], x[..., D // 2:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    a, b = x[..., 0::2], x[..., 1::2]  # llama files: pairs (2i, 2i + 1)
    y = np.empty_like(x); y[..., 0::2] = a * cos - b * sin; y[..., 1::2] = b * cos + a * sin
    return y

def activation(g):
    if gemma: return f32(0.5) * g * (1 + np.tanh(f32(np.sqrt(2 / np.pi)) * (g + f32(0.044715) * g * g * g)))
    return g / (1 + np.exp(-g))

def run(ids, pattern_layers):
    T = len(ids)
    C = W["token_embd.weight"].shape[1]
    x = W["token_embd.weight"][ids]
    if gemma: x = x * f32(np.sqrt(C))
    got = {"resid": [], "pattern": {}}
    row, key = np.arange(T)[:, None], np.arange(T)[None, :]
    for l in range(L):
        p = f"blk.{l}."
        angle = row * (base if not window[l] else 1e4) ** (-np.arange(0, D, 2) / D)
        cos, sin = (f(angle).astype(f32)[:, None] for f in (np.cos, np.sin))
        hidden = (key > row) | (row - key >= (window[l] or T))
        got["resid"].append(x[-1].copy())
        h = norm(x, W[p + "attn_norm.weight"])
        q = (h @ W[p + "attn_q.weight"].T).reshape(T, H, D)
        k = (h @ W[p + "attn_k.weight"].T).reshape(T, G, D)
        if gemma: q, k = norm(q, W[p + "attn_q_norm.weight"]), norm(k, W[p + "attn_k_norm.weight"])
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        v = (h @ W[p + "attn_v.weight"].T).reshape(T, G, D)
        z = np.empty((T, H, D), f32)
        pattern = np.empty((H, T, T), f32)
        for i in range(H):
            s = q[:, i] @ k[:, i * G // H].T * f32(1 / np.sqrt(D))
            s[hidden] = -np.inf
            e = np.exp(s - s.max(axis=1, keepdims=True))
            pattern[i] = e / e.sum(axis=1, keepdims=True, dtype=f32)
            z[:, i] = pattern[i] @ v[:, i * G // H]
        if str(l) in pattern_layers: got["pattern"][str(l)] = pattern
        branch = z.reshape(T, H * D) @ W[p + "attn_output.weight"].T
        x = x + (norm(branch, W[p + "post_attention_norm.weight"]) if gemma else branch)
        h = norm(x, W[p + "ffn_norm.weight"])
        branch = (activation(h @ W[p + "ffn_gate.weight"].T) * (h @ W[p + "ffn_up.weight"].T)) @ W[p + "ffn_down.weight"].T
        x = x + (norm(branch, W[p + "post_ffw_norm.weight"]) if gemma else branch)
    got["final"] = norm(x, W["output_norm.weight"])
    return got

def lse(x):
    m = x.max(axis=-1, keepdims=True)
    return (m + np.log(np.exp(x - m).sum(axis=-1, keepdims=True, dtype=f32)))[..., 0]

def logprobs(final, ids):  # a few rows at a time: a vocabulary is large
    out = []
    for first in range(0, len(ids) - 1, 64):
        logits = final[first:min(first + 64, len(ids) - 1)] @ W["token_embd.weight"].T
        taken = logits[np.arange(len(logits)), ids[first + 1:first + 1 + len(logits)]]
        m = logits.max(axis=-1)  # log_softmax: the largest logit leaves before the rest rounds
        out.extend((taken - m) - np.log(np.exp(logits - m[:, None]).sum(axis=-1, dtype=f32)))
    return out

def entropy(p):
    with np.errstate(divide="ignore", invalid="ignore"): return -np.where(p > 0, p * np.log(p), 0).sum(axis=-1, dtype=f32)

def worst(a, b): return float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)), initial=0))

result = {}
here = os.path.dirname(os.path.abspath(__file__))
for name in (f"causal_{sys.argv[2]}.json", f"causal_long_{sys.argv[2]}.json"):
    for prompt in json.load(open(os.path.join(here, name)))["prompts"]:
        got = run(prompt["ids"], prompt["pattern_last_row"])
        ids = np.array(prompt["ids"])
        top = np.array(prompt["top"])
        logits = got["final"][-1] @ W["token_embd.weight"].T
        result[prompt["name"]] = {
            "top": worst(logits[top[:, 0].astype(int)], top[:, 1]),
            "logsumexp": worst(lse(logits), prompt["logsumexp"]),
            "token_logprob": worst(logprobs(got["final"], ids), prompt["token_logprob"]),
            "resid_last_row_norm": [worst(np.linalg.norm(r), n) for r, n in zip(got["resid"], prompt["resid_last_row_norm"])],
            "resid_last_row_first8": [worst(r[:8], e) for r, e in zip(got["resid"], prompt["resid_last_row_first8"])],
            "pattern_last_row": {l: worst(p[:, -1], prompt["pattern_last_row"][l]) for l, p in got["pattern"].items()},
            "pattern_row_entropy": {l: worst(entropy(p), prompt["pattern_row_entropy"][l]) for l, p in got["pattern"].items()},
            "pattern_column_sum": {l: worst(p.sum(axis=1, dtype=f32), prompt["pattern_column_sum"][l]) for l, p in got["pattern"].items()},
        }
        print(prompt["name"], result[prompt["name"]]["top"], result[prompt["name"]]["token_logprob"], prompt["err32"], flush=True)
json.dump(result, open(os.path.join(here, f"plain_f32_{sys.argv[2]}.json"), "w"), indent=1)
