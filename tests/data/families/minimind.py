"""The layout of minimind's own checkpoints."""

import json
import re

import safetensors.torch
import torch


def interleaved(x, dim):
    """Channels (or rows) of a head from halves, (0..D/2, D/2..D), to pairs, (0, D/2), (1, D/2 + 1), ..."""
    return x.unflatten(dim, (2, x.shape[dim] // 2)).transpose(dim, dim + 1).flatten(dim, dim + 1)


def write_minimind(version, folder, target, config):
    """The layout of minimind's own checkpoints, from the Llama (1, 2) or Qwen3 (3) form of the same model."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    common = {"model_type": "minimind", "vocab_size": config["vocab_size"], "use_moe": False, "dropout": 0.0,
              "flash_attn": True}
    if version == 1:
        names = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "model.layers": "layers",
                 "self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk",
                 "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo",
                 "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
                 "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm",
                 "post_attention_layernorm": "ffn_norm"}
        renamed = {}
        for name, value in tensors.items():
            if re.search("q_proj|k_proj", name):
                value = interleaved(value.unflatten(0, (-1, config["head_dim"])), 1).flatten(0, 1)
            for theirs, ours in names.items():
                name = re.sub(rf"(^|(?<=\.)){re.escape(theirs)}(?=\.)", ours, name)
            renamed[name] = value.contiguous()
        renamed["output.weight"] = renamed["tok_embeddings.weight"].clone()
        length = config["max_position_embeddings"]
        mask = torch.full((1, 1, length, length), float("-inf")).triu(1)
        for l in range(config["num_hidden_layers"]):  # a buffer that those files hold
            renamed[f"layers.{l}.attention.mask"] = mask.clone()
        tensors = renamed
        own = {"dim": config["hidden_size"], "n_layers": config["num_hidden_layers"],
               "n_heads": config["num_attention_heads"], "n_kv_heads": config["num_key_value_heads"],
               "hidden_dim": config["intermediate_size"], "multiple_of": 64, "norm_eps": config["rms_norm_eps"],
               "max_seq_len": config["max_position_embeddings"], "num_experts_per_tok": 2, "n_routed_experts": 4,
               "n_shared_experts": True, "scoring_func": "softmax", "aux_loss_alpha": 0.01, "seq_aux": True,
               "norm_topk_prob": True, "torch_dtype": "float32"}
    else:
        same = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                "max_position_embeddings", "rms_norm_eps", "hidden_act", "bos_token_id", "eos_token_id")
        own = {k: config[k] for k in same} | {
            "rope_theta": config["rope_parameters"]["rope_theta"], "inference_rope_scaling": False,
            "rope_scaling": None, "num_experts_per_tok": 2, "norm_topk_prob": True, "torch_dtype": config["dtype"]}
        if version == 2:
            own |= {"n_routed_experts": 4, "n_shared_experts": 1, "scoring_func": "softmax", "aux_loss_alpha": 0.1,
                    "seq_aux": True, "architectures": ["MiniMindForCausalLM"]}
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        else:
            own |= {"head_dim": config["head_dim"], "tie_word_embeddings": True, "num_experts": 4,
                    "num_experts_per_tok": 1, "moe_intermediate_size": config["intermediate_size"],
                    "router_aux_loss_coef": 0.0005, "architectures": ["MiniMindForCausalLM"]}
    target.mkdir(exist_ok=True)
    (target / "config.json").write_text(json.dumps(common | own, indent=2, sort_keys=True) + "\n")
    safetensors.torch.save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
