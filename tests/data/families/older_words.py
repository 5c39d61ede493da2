"""The same models as earlier versions wrote them: config.old.json and model.old.safetensors."""

import re

import torch

# What weights are called in files that are found in the wild, for model.old.safetensors: names of before, buffers that
# were weights once, tensors that nothing reads. By family: names to replace, and what else is there, per layer or once.
TRIANGLE = lambda t: torch.ones(80, 80).tril()[None, None]
FREQUENCIES = lambda t: 1 / 10000 ** (torch.arange(0, 8, 2) / 8)
POSITIONS = lambda t: torch.arange(80)[None]
OLD_NAMES = {
    "gpt2": ({r"^transformer\.": ""}, {"h.{}.attn.bias": TRIANGLE, "h.{}.attn.masked_bias": lambda t: torch.tensor(-1e4)}),
    "gpt_neo": ({}, {"transformer.h.{}.attn.attention.bias": TRIANGLE,
                     "transformer.h.{}.attn.attention.masked_bias": lambda t: torch.tensor(-1e9)}),
    "gpt_neox_serial": ({}, {"gpt_neox.layers.{}.attention.bias": TRIANGLE,
                             "gpt_neox.layers.{}.attention.masked_bias": lambda t: torch.tensor(-1e9),
                             "gpt_neox.layers.{}.attention.rotary_emb.inv_freq": FREQUENCIES}),
    "llama_bias": ({}, {"model.layers.{}.self_attn.rotary_emb.inv_freq": FREQUENCIES}),
    "opt": ({r"^model\.": ""}, {}),
    "bert": ({r"LayerNorm\.weight$": "LayerNorm.gamma", r"LayerNorm\.bias$": "LayerNorm.beta"},
             {"bert.embeddings.position_ids": POSITIONS, "bert.pooler.dense.weight": lambda t: torch.ones(16, 16),
              "bert.pooler.dense.bias": lambda t: torch.ones(16),
              "cls.seq_relationship.weight": lambda t: torch.ones(2, 16),
              "cls.seq_relationship.bias": lambda t: torch.ones(2)}),
    "roberta": ({}, {"roberta.embeddings.position_ids": POSITIONS}),
    "t5": ({}, {"encoder.embed_tokens.weight": lambda t: t["shared.weight"].clone(),
                "decoder.embed_tokens.weight": lambda t: t["shared.weight"].clone(),
                "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": lambda t: torch.ones(32, 2)}),
}


def old_spelling(config):
    """config.json in the words of earlier versions."""
    old = {k: v for k, v in config.items() if k not in (
        "rope_parameters", "dtype", "transformers_version", "_sliding_window_pattern")}
    old["torch_dtype"] = config["dtype"]
    rope = config["rope_parameters"]
    if "full_attention" in rope:
        old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        old["sliding_window_pattern"] = len(old.pop("layer_types"))
        rope = rope["full_attention"]
    rope = dict(rope)
    if config["model_type"] == "gpt_neox":
        return old | {"rotary_emb_base": rope["rope_theta"], "rotary_pct": rope["partial_rotary_factor"]}
    old["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    kind = rope.pop("rope_type")
    if config["model_type"] == "phi3":
        old["original_max_position_embeddings"] = rope.pop("original_max_position_embeddings")
    # Those that came later have the later word; for Gemma 3, transformers does not take the earlier one.
    word = "rope_type" if kind == "llama3" or "rope_local_base_freq" in old else "type"
    old["rope_scaling"] = {word: kind, **rope} if kind != "default" else None
    return old


def old_names(name, tensors):
    """The same weights as model.old.safetensors has them."""
    replaced, added = OLD_NAMES[name]
    old = {}
    for key, value in tensors.items():
        for now, before in replaced.items():
            key = re.sub(now, before, key)
        old[key] = value
    for key, value in added.items():
        for l in range(2 if "{}" in key else 1):
            old[key.format(l)] = value(tensors)
    return old
