#!/usr/bin/env python3
"""Writes the small random models of tests/data/families as GGUF files: to_gguf.py -> gguf/NAME.gguf

Needs gguf 0.19, safetensors 0.8, torch 2.15. The rules are those by which llama.cpp converts (its conversion/*.py): names
of gguf.constants; q and k of Llama with their rotary pairs side by side; Gemma's norms with their 1 added; Conv1D turned;
the heads of GPT-NeoX one kind after the other; experts in stacks; vectors and routers widened to F32. Two keys are there
that converters do not write, because these models are not the sizes that llama.cpp knows by heart: attention.scale and
attention.sliding_window_pattern (Gemma), and Mistral's attention.sliding_window, which they leave out.
"""
import json, math, pathlib, sys
import gguf, safetensors.torch, torch

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {torch.float32: gguf.GGMLQuantizationType.F32, torch.float16: gguf.GGMLQuantizationType.F16,
         torch.bfloat16: gguf.GGMLQuantizationType.BF16}


class File:
    def __init__(self, name, architecture):
        folder = HERE / name
        self.config = json.loads((folder / "config.json").read_text())
        self.stored = safetensors.torch.load_file(folder / "model.safetensors")
        self.writer = gguf.GGUFWriter(HERE / "gguf" / f"{name}.gguf", architecture)
        c = self.config
        size = lambda *keys, default=None: next((c[k] for k in keys if c.get(k) is not None), default)
        self.layers = size("num_hidden_layers", "n_layer")
        self.width = size("hidden_size", "n_embd")
        self.heads = size("num_attention_heads", "n_head")
        self.kv_heads = size("num_key_value_heads", default=self.heads)
        self.head_dim = size("head_dim", default=self.width // self.heads)
        w = self.writer
        w.add_block_count(self.layers)
        w.add_context_length(size("max_position_embeddings", "n_positions"))
        w.add_embedding_length(self.width)
        w.add_feed_forward_length(size("intermediate_size", "n_inner"))
        w.add_head_count(self.heads)
        if "num_key_value_heads" in c: w.add_head_count_kv(self.kv_heads)
        if "head_dim" in c:
            w.add_key_length(self.head_dim)
            w.add_value_length(self.head_dim)
        if "rms_norm_eps" in c: w.add_layer_norm_rms_eps(c["rms_norm_eps"])
        if (epsilon := size("layer_norm_eps", "layer_norm_epsilon")) is not None: w.add_layer_norm_eps(epsilon)
        self.vocabulary()

    def vocabulary(self):  # ids are all that is asked of them; <3> and so on
        pieces = ["a", "b", "ab"] + [f"<{i}>" for i in range(3, self.config["vocab_size"])]
        self.writer.add_tokenizer_model("gpt2")
        self.writer.add_tokenizer_pre("gpt-2")
        self.writer.add_token_list(pieces)
        self.writer.add_token_types([1, 1, 1] + [3] * (len(pieces) - 3))
        self.writer.add_token_merges(["a b"])
        self.writer.add_bos_token_id(3)
        self.writer.add_eos_token_id(4)

    def rope(self):
        rope = self.config["rope_parameters"]
        rope = rope.get("full_attention", rope)
        w = self.writer
        w.add_rope_freq_base(rope["rope_theta"])
        if rope["rope_type"] in ("linear", "yarn"):
            w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
            w.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
            w.add_rope_scaling_yarn_beta_fast(rope.get("beta_fast", 32.0))
            w.add_rope_scaling_yarn_beta_slow(rope.get("beta_slow", 1.0))
        return rope

    def has(self, name): return name in self.stored

    def put(self, name, tensor, wide=False):
        tensor = tensor.contiguous()
        if tensor.dim() < 2 or wide: tensor = tensor.float()  # vectors, routers, tables of positions
        kind = TYPES[tensor.dtype]
        shape = list(tensor.shape)
        array = tensor.view(torch.uint8).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
        self.writer.add_tensor(name, array, raw_shape=array.shape, raw_dtype=kind)

    def take(self, stored, name, change=lambda t: t, wide=False):
        for suffix in (".weight", ".bias"):
            if self.has(stored + suffix): self.put(name + suffix, change(self.stored[stored + suffix]), wide)

    def close(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def permuted(heads):
    return lambda t: t.reshape(heads, 2, t.shape[0] // heads // 2, *t.shape[1:]).swapaxes(1, 2).reshape(t.shape)


def llama_like(f, norm=lambda t: t, q=lambda t: t, k=lambda t: t):
    f.take("model.embed_tokens", "token_embd")
    f.take("model.norm", "output_norm", norm)
    if not f.config["tie_word_embeddings"]: f.take("lm_head", "output")
    for l in range(f.layers):
        at, to = f"model.layers.{l}.", f"blk.{l}."
        f.take(at + "input_layernorm", to + "attn_norm", norm)
        f.take(at + "self_attn.q_proj", to + "attn_q", q)
        f.take(at + "self_attn.k_proj", to + "attn_k", k)
        f.take(at + "self_attn.v_proj", to + "attn_v")
        f.take(at + "self_attn.qkv_proj", to + "attn_qkv")
        f.take(at + "self_attn.o_proj", to + "attn_output")
        f.take(at + "self_attn.q_norm", to + "attn_q_norm", norm)
        f.take(at + "self_attn.k_norm", to + "attn_k_norm", norm)
        f.take(at + "mlp.gate_proj", to + "ffn_gate")
        f.take(at + "mlp.up_proj", to + "ffn_up")
        f.take(at + "mlp.gate_up_proj", to + "ffn_up")
        f.take(at + "mlp.down_proj", to + "ffn_down")


def llama(name):
    f = File(name, "llama")
    rope = f.rope()
    f.writer.add_vocab_size(f.config["vocab_size"])
    f.writer.add_rope_dimension_count(f.head_dim)
    if f.config.get("sliding_window"): f.writer.add_sliding_window(f.config["sliding_window"])
    llama_like(f, q=permuted(f.heads), k=permuted(f.kv_heads))
    for l in range(f.layers): f.take(f"model.layers.{l}.post_attention_layernorm", f"blk.{l}.ffn_norm")
    if rope["rope_type"] == "llama3":
        frequencies = 1.0 / (rope["rope_theta"] ** (torch.arange(0, f.head_dim, 2, dtype=torch.float32) / f.head_dim))
        factors = []
        for frequency in frequencies:
            turns = rope["original_max_position_embeddings"] / (2 * math.pi / frequency)
            smooth = (turns - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            smooth = min(max(smooth, 0), 1)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
        f.put("rope_freqs.weight", torch.tensor(factors))
    f.close()


def qwen(name, architecture):
    f = File(name, architecture)
    f.rope()
    llama_like(f)
    count = f.config.get("num_experts", f.config.get("num_local_experts", 0))
    for l in range(f.layers):
        at, to = f"model.layers.{l}.", f"blk.{l}."
        f.take(at + "post_attention_layernorm", to + "ffn_norm")
        f.take(at + "mlp.gate", to + "ffn_gate_inp", wide=True)
        for kind in ("gate", "up", "down"):
            experts = [f"{at}mlp.experts.{e}.{kind}_proj.weight" for e in range(count)]
            if experts and f.has(experts[0]):
                f.put(f"{to}ffn_{kind}_exps.weight", torch.stack([f.stored[e] for e in experts]))
    if count:
        f.writer.add_expert_count(count)
        f.writer.add_expert_used_count(f.config["num_experts_per_tok"])
        f.writer.add_expert_feed_forward_length(f.config["moe_intermediate_size"])
    f.close()


def gemma(name, architecture):
    f = File(name, architecture)
    if architecture == "gemma3":
        f.rope()
        f.writer.add_uint32("gemma3.attention.sliding_window_pattern", 2)
    else:
        f.writer.add_attn_logit_softcapping(f.config["attn_logit_softcapping"])
        f.writer.add_final_logit_softcapping(f.config["final_logit_softcapping"])
    f.writer.add_sliding_window(f.config["sliding_window"])
    f.writer.add_float32(f"{architecture}.attention.scale", f.config["query_pre_attn_scalar"] ** -0.5)
    one_more = lambda t: t.float() + 1
    llama_like(f, norm=one_more)
    for l in range(f.layers):
        at, to = f"model.layers.{l}.", f"blk.{l}."
        f.take(at + "post_attention_layernorm", to + "post_attention_norm", one_more)
        f.take(at + "pre_feedforward_layernorm", to + "ffn_norm", one_more)
        f.take(at + "post_feedforward_layernorm", to + "post_ffw_norm", one_more)
    f.close()


def phi3(name):
    f = File(name, "phi3")
    rope = f.rope()
    original = rope["original_max_position_embeddings"]
    scale = f.config["max_position_embeddings"] / original
    f.writer.add_rope_scaling_orig_ctx_len(original)
    f.writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * f.width) // f.heads)
    f.writer.add_sliding_window(f.config["sliding_window"] or 0)
    f.writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)))
    f.put("rope_factors_long.weight", torch.tensor(rope["long_factor"]))
    f.put("rope_factors_short.weight", torch.tensor(rope["short_factor"]))
    llama_like(f)
    for l in range(f.layers): f.take(f"model.layers.{l}.post_attention_layernorm", f"blk.{l}.ffn_norm")
    f.close()


def gpt2(name):
    f = File(name, "gpt2")
    turned = lambda t: t.T if t.dim() == 2 else t
    f.take("transformer.wte", "token_embd")
    f.take("transformer.wpe", "position_embd", wide=True)
    f.take("transformer.ln_f", "output_norm")
    for l in range(f.layers):
        at, to = f"transformer.h.{l}.", f"blk.{l}."
        f.take(at + "ln_1", to + "attn_norm")
        f.take(at + "attn.c_attn", to + "attn_qkv", turned)
        f.take(at + "attn.c_proj", to + "attn_output", turned)
        f.take(at + "ln_2", to + "ffn_norm")
        f.take(at + "mlp.c_fc", to + "ffn_up", turned)
        f.take(at + "mlp.c_proj", to + "ffn_down", turned)
    f.close()


def gpt_neox(name):
    f = File(name, "gptneox")
    rope = f.config["rope_parameters"]
    f.writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * f.head_dim))
    f.writer.add_parallel_residual(f.config["use_parallel_residual"])

    def one_kind_after_the_other(t):
        parts = t.reshape(f.heads, 3, f.head_dim, *t.shape[1:])
        return torch.cat([parts[:, i].reshape(-1, *t.shape[1:]) for i in range(3)])

    f.take("gpt_neox.embed_in", "token_embd")
    f.take("gpt_neox.final_layer_norm", "output_norm")
    f.take("embed_out", "output")
    f.take("lm_head", "output")
    for l in range(f.layers):
        at, to = f"gpt_neox.layers.{l}.", f"blk.{l}."
        f.take(at + "input_layernorm", to + "attn_norm")
        f.take(at + "attention.query_key_value", to + "attn_qkv", one_kind_after_the_other)
        f.take(at + "attention.dense", to + "attn_output")
        f.take(at + "post_attention_layernorm", to + "ffn_norm")
        f.take(at + "mlp.dense_h_to_4h", to + "ffn_up")
        f.take(at + "mlp.dense_4h_to_h", to + "ffn_down")
    f.close()


def gpt_oss(name):
    f = File(name, "gpt-oss")
    f.rope()
    f.writer.add_sliding_window(f.config["sliding_window"])
    f.writer.add_expert_count(f.config["num_local_experts"])
    f.writer.add_expert_used_count(f.config["num_experts_per_tok"])
    f.writer.add_expert_feed_forward_length(f.config["intermediate_size"])
    llama_like(f)
    for l in range(f.layers):
        at, to = f"model.layers.{l}.", f"blk.{l}."
        f.put(to + "attn_sinks.weight", f.stored[at + "self_attn.sinks"])
        f.take(at + "post_attention_layernorm", to + "post_attention_norm")
        f.take(at + "mlp.router", to + "ffn_gate_inp", wide=True)
        experts = {kind: f.stored[f"{at}mlp.experts.{kind}"] for kind in (
            "gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias")}
        both = experts["gate_up_proj"].transpose(-1, -2)
        for i, kind in enumerate(("gate", "up")):
            f.put(f"{to}ffn_{kind}_exps.weight", both[:, i::2])
            f.put(f"{to}ffn_{kind}_exps.bias", experts["gate_up_proj_bias"][:, i::2], wide=True)
        f.put(f"{to}ffn_down_exps.weight", experts["down_proj"].transpose(-1, -2))
        f.put(f"{to}ffn_down_exps.bias", experts["down_proj_bias"], wide=True)
    f.close()


def bert(name, prefix):
    f = File(name, "bert")
    f.writer.add_causal_attention(False)
    f.writer.add_token_type_count(f.config["type_vocab_size"])
    f.writer.add_pooling_type(gguf.PoolingType.MEAN)
    f.take(prefix + "embeddings.word_embeddings", "token_embd")
    f.take(prefix + "embeddings.position_embeddings", "position_embd", wide=True)
    f.take(prefix + "embeddings.token_type_embeddings", "token_types", wide=True)
    f.take(prefix + "embeddings.LayerNorm", "token_embd_norm")
    for l in range(f.layers):
        at, to = f"{prefix}encoder.layer.{l}.", f"blk.{l}."
        f.take(at + "attention.self.query", to + "attn_q")
        f.take(at + "attention.self.key", to + "attn_k")
        f.take(at + "attention.self.value", to + "attn_v")
        f.take(at + "attention.output.dense", to + "attn_output")
        f.take(at + "attention.output.LayerNorm", to + "attn_output_norm")
        f.take(at + "intermediate.dense", to + "ffn_up")
        f.take(at + "output.dense", to + "ffn_down")
        f.take(at + "output.LayerNorm", to + "layer_output_norm")
    f.close()


def main():
    (HERE / "gguf").mkdir(exist_ok=True)
    for name in ("llama", "llama_bias", "llama_llama3", "llama_yarn", "mistral"): llama(name)
    for name, architecture in (("qwen2", "qwen2"), ("qwen3", "qwen3"), ("qwen3_moe", "qwen3moe")): qwen(name, architecture)
    gemma("gemma2", "gemma2")
    gemma("gemma3_f32", "gemma3")
    phi3("phi3")
    gpt2("gpt2")
    for name in ("gpt_neox", "gpt_neox_serial"): gpt_neox(name)
    gpt_oss("gpt_oss")
    bert("bert_bare", "")


if __name__ == "__main__":
    main()
