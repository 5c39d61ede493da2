"""How far a plain float32 evaluation is from the float64 goldens: plain_f32.py MODEL.gguf -> plain_f32.json

The yardstick of law 1: regard may be at most twice as far from the float64 values as this is. It needs numpy and gguf; the
weights are the stored values dequantised to float32. Per prompt and quantity it writes the largest absolute error.
"""
import json, os, sys
import numpy as np
from gguf import GGUFReader, dequantize

f32 = np.float32
reader = GGUFReader(sys.argv[1])
field = lambda name: reader.fields[name].contents()
W = {t.name: dequantize(t.data, t.tensor_type).astype(f32).reshape([int(n) for n in reversed(t.shape)]) for t in reader.tensors}
L, H, G = (int(field("llama." + k)) for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
eps, base = f32(field("llama.attention.layer_norm_rms_epsilon")), float(field("llama.rope.freq_base"))
D = W["blk.0.attn_q.weight"].shape[0] // H

def norm(x, w): return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=f32) + eps) * w

def rotate(x, cos, sin):  # GGUF llama files: pairs (2i, 2i + 1)
    a, b = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x); y[..., 0::2] = a * cos - b * sin; y[..., 1::2] = b * cos + a * sin
    return y

def run(ids, pattern_layers):
    T = len(ids)
    angle = np.arange(T)[:, None] * base ** (-np.arange(0, D, 2) / D)
    cos, sin = (f(angle).astype(f32)[:, None] for f in (np.cos, np.sin))
    x = W["token_embd.weight"][ids]
    got = {"resid": [], "pattern": {}}
    hidden = np.triu(np.ones((T, T), bool), 1)
    for l in range(L):
        p = f"blk.{l}."
        got["resid"].append(x[-1].copy())
        h = norm(x, W[p + "attn_norm.weight"])
        q = rotate((h @ W[p + "attn_q.weight"].T).reshape(T, H, D), cos, sin)
        k = rotate((h @ W[p + "attn_k.weight"].T).reshape(T, G, D), cos, sin)
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
        x = x + z.reshape(T, H * D) @ W[p + "attn_output.weight"].T
        h = norm(x, W[p + "ffn_norm.weight"])
        g, u = h @ W[p + "ffn_gate.weight"].T, h @ W[p + "ffn_up.weight"].T
        x = x + (g / (1 + np.exp(-g)) * u) @ W[p + "ffn_down.weight"].T
    h = norm(x, W["output_norm.weight"])
    got["logits"] = h @ W["token_embd.weight"].T
    return got

def lse(x):
    m = x.max(axis=-1, keepdims=True)
    return (m + np.log(np.exp(x - m).sum(axis=-1, keepdims=True, dtype=f32)))[..., 0]

def entropy(p):
    with np.errstate(divide="ignore", invalid="ignore"): return -np.where(p > 0, p * np.log(p), 0).sum(axis=-1, dtype=f32)

def worst(a, b): return float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)), initial=0))

result = {}
for name in ("causal_smollm2.json", "causal_long_smollm2.json"):
    for prompt in json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)))["prompts"]:
        got = run(prompt["ids"], prompt["pattern_last_row"])
        ids = np.array(prompt["ids"])
        top = np.array(prompt["top"])
        logprob = got["logits"][np.arange(len(ids) - 1), ids[1:]] - lse(got["logits"][:-1])
        result[prompt["name"]] = {
            "top": worst(got["logits"][-1][top[:, 0].astype(int)], top[:, 1]),
            "logsumexp": worst(lse(got["logits"][-1:])[0], prompt["logsumexp"]),
            "token_logprob": worst(logprob, prompt["token_logprob"]),
            "resid_last_row_norm": [worst(np.linalg.norm(r), n) for r, n in zip(got["resid"], prompt["resid_last_row_norm"])],
            "resid_last_row_first8": [worst(r[:8], e) for r, e in zip(got["resid"], prompt["resid_last_row_first8"])],
            "pattern_last_row": {l: worst(p[:, -1], prompt["pattern_last_row"][l]) for l, p in got["pattern"].items()},
            "pattern_row_entropy": {l: worst(entropy(p), prompt["pattern_row_entropy"][l]) for l, p in got["pattern"].items()},
            "pattern_column_sum": {l: worst(p.sum(axis=1, dtype=f32), prompt["pattern_column_sum"][l]) for l, p in got["pattern"].items()},
        }
        print(prompt["name"], result[prompt["name"]]["top"], prompt["err32"], flush=True)
json.dump(result, open("plain_f32.json", "w"), indent=1)
