"""How far a plain float32 evaluation of an encoder is from the float64 goldens: plain_f32_encoder.py MODEL_FOLDER -> plain_f32_encoder.json

As plain_f32.py does for the causal models; it needs numpy 2 and safetensors 0.8. Per text and quantity it writes the largest
absolute error.
"""
import json, math, os, sys
import numpy as np
from safetensors.numpy import load_file

f32 = np.float32
here = os.path.dirname(os.path.abspath(__file__))
config = json.load(open(os.path.join(sys.argv[1], "config.json")))
W = {name.removeprefix("bert."): w.astype(f32) for name, w in load_file(os.path.join(sys.argv[1], "model.safetensors")).items() if w.dtype.kind == "f"}
L, H, eps = config["num_hidden_layers"], config["num_attention_heads"], f32(config["layer_norm_eps"])
erf = np.vectorize(math.erf)  # the rounded value: an f32 implementation's own error comes on top

def linear(x, name): return x @ W[name + ".weight"].T + W[name + ".bias"]

def norm(x, name):
    centred = x - x.mean(axis=-1, keepdims=True, dtype=f32)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True, dtype=f32) + eps) * W[name + ".weight"] + W[name + ".bias"]

def run(ids, pattern_layers):
    T = len(ids)
    e = "embeddings."
    x = W[e + "word_embeddings.weight"][ids] + W[e + "token_type_embeddings.weight"][0] + W[e + "position_embeddings.weight"][:T]
    x = norm(x, e + "LayerNorm")
    D = x.shape[1] // H
    hidden, pattern = [x], {}
    for l in range(L):
        p = f"encoder.layer.{l}."
        q, k, v = (linear(x, p + "attention.self." + n).reshape(T, H, D) for n in ("query", "key", "value"))
        s = np.einsum("ihd,jhd->hij", q, k) * f32(1 / math.sqrt(D))
        w = np.exp(s - s.max(axis=-1, keepdims=True))
        w = w / w.sum(axis=-1, keepdims=True, dtype=f32)
        if str(l) in pattern_layers: pattern[str(l)] = w
        z = np.einsum("hij,jhd->ihd", w, v).reshape(T, -1)
        x = norm(x + linear(z, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        h = h * f32(0.5) * (1 + erf(h / f32(math.sqrt(2))).astype(f32))
        x = norm(x + linear(h, p + "output.dense"), p + "output.LayerNorm")
        hidden.append(x)
    mean = x.mean(axis=0, dtype=f32)
    return hidden, pattern, mean / np.sqrt((mean * mean).sum(dtype=f32))

def worst(a, b): return float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))))

result = []
for text in json.load(open(os.path.join(here, "encoder_minilm.json")))["texts"]:
    hidden, pattern, embedding = run(text["ids"], text["pattern"])
    assert all(x.dtype == f32 for x in [*hidden, *pattern.values(), embedding])
    result.append({"hidden": worst([h[:, :8] for h in hidden], text["hidden_first8"]),
                   "pattern": {l: worst(p, text["pattern"][l]) for l, p in pattern.items()},
                   "embedding": worst(embedding, text["embedding_mean_normalised"])})
json.dump(result, open(os.path.join(here, "plain_f32_encoder.json"), "w"), indent=1)
print(json.dumps(result, indent=1))
