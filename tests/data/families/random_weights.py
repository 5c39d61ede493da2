"""Weights by a fixed seed, large enough for patterns to be uneven."""

import re

import torch


def randomise(model, seed, qk):
    random = torch.Generator().manual_seed(seed)
    gemma = model.config.model_type.startswith("gemma")

    def draw(shape, std, mean=0.0):
        return mean + std * torch.randn(shape, generator=random)

    for name, p in [*model.named_parameters(), *(b for b in model.named_buffers() if "final_logits_bias" in b[0])]:
        module = model.get_submodule(name.rpartition(".")[0])
        if "final_logits_bias" in name or "sinks" in name:
            value = draw(p.shape, 1.0)
        elif "relative_attention_bias" in name:
            value = draw(p.shape, 1.0)
        elif isinstance(module, torch.nn.Embedding):
            token = p.shape[0] == model.config.vocab_size
            scaled = gemma or getattr(model.config, "scale_embedding", False)
            value = draw(p.shape, (0.3 if scaled else 1.0) if token else 0.5)
        elif "norm" in name.lower() or "ln_" in name.lower():
            # Normed queries and keys make scores of about 1: too even.
            ones = 0.0 if gemma or name.endswith("bias") else 1.7 if "q_norm" in name or "k_norm" in name else 1.0
            value = draw(p.shape, 0.3, ones)
        elif name.endswith("bias"):
            value = draw(p.shape, 0.3)
        else:
            conv = type(module).__name__ in ("Conv1D", "GptOssExperts")
            fan_in = p.shape[-2] if conv else p.shape[-1]
            attention = re.search(r"q_proj|k_proj|\.q\.|\.k\.|q_lin|k_lin|query|key|c_attn|Wqkv|qkv_proj", name)
            router = "router" in name or ".gate." in name
            clamped = type(module).__name__ == "GptOssExperts" and "gate_up" in name  # at 7
            value = draw(p.shape, (qk if attention else 2.0 if router else 4.0 if clamped else 1.0) / fan_in**0.5)
        p.data.copy_(value)
    model.tie_weights()
