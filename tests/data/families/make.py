#!/usr/bin/env python3
"""Makes the small random models of tests/data/families and the values that the public implementation gives for them.

    python make.py              all families
    python make.py gpt2 t5      those
    python make.py --list       their names

Needs transformers 5.24, torch 2.15, safetensors 0.8 (CPU). Each family is a folder with config.json and
model.safetensors as `save_pretrained` writes them, and expected.safetensors (README.md says what is in it). Weights are
random by a fixed seed; nothing keeps its first value of 0 or 1, so that a bias, a norm, a sink or a position that is
left out shows. The values are those of the public modules, seen by hooks, in a float64 run; the same hooks on plain
float32 runs give the errors `err32_*` that a test may measure itself by."""

import contextlib
import json
import pathlib
import re
import sys
import tempfile
import zlib

import safetensors.torch
import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

HERE = pathlib.Path(__file__).resolve().parent
T = 66  # tokens: more than every window, and than the first context of longrope and yarn
PATTERN_UNIT = 2.0**-30  # patterns are stored as I32 multiples of this

# --- the families, as data -------------------------------------------------------------------------------------------
# `model`: class of transformers. `dtype`: of the stored weights. `qk`: how large queries and keys are made (families
# that do not scale their scores want less). `old`: config.old.json too, the same in older words. Rest: the config.

DECODER = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, head_dim=8, max_position_embeddings=128, bos_token_id=1, eos_token_id=2,
               pad_token_id=None, tie_word_embeddings=False)
GEMMA = DECODER | dict(hidden_size=20, intermediate_size=14, sliding_window=9, query_pre_attn_scalar=12, pad_token_id=0,
                       layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=True)
ENCODER = dict(vocab_size=48, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
               max_position_embeddings=80, pad_token_id=0)
GPT_NEOX = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=128, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
GPT2 = dict(vocab_size=48, n_embd=16, n_layer=2, n_head=2, n_inner=24, n_positions=80, bos_token_id=1, eos_token_id=2)
OPT = dict(vocab_size=48, hidden_size=16, ffn_dim=24, num_hidden_layers=2, num_attention_heads=2, pad_token_id=1,
           bos_token_id=2, eos_token_id=2, max_position_embeddings=80)
T5 = dict(vocab_size=48, d_model=12, d_kv=4, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0, eos_token_id=1,
          decoder_start_token_id=0)
# With few channels, a small base: else the ramp from one frequency to the next lies between two of them.
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=32)

FAMILIES = {
    "llama": dict(model="LlamaForCausalLM", dtype="bfloat16", **DECODER, rms_norm_eps=1e-5),
    "llama_bias": dict(model="LlamaForCausalLM", attention_bias=True, mlp_bias=True, **DECODER),
    "llama_llama3": dict(model="LlamaForCausalLM", dtype="float16", old=True, **DECODER | dict(
        tie_word_embeddings=True, rope_parameters=dict(
            rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=64))),
    "llama_linear": dict(model="LlamaForCausalLM", dtype="float64", **DECODER, rope_parameters=dict(
        rope_type="linear", rope_theta=10000.0, factor=2.5)),
    "llama_yarn": dict(model="LlamaForCausalLM", old=True, **DECODER, rope_parameters=YARN),
    "mistral": dict(model="MistralForCausalLM", dtype="bfloat16", sliding_window=7, **DECODER),
    "qwen2": dict(model="Qwen2ForCausalLM", use_sliding_window=True, sliding_window=11, max_window_layers=1,
                  **{k: v for k, v in DECODER.items() if k != "head_dim"}),
    "qwen3": dict(model="Qwen3ForCausalLM", dtype="bfloat16", **DECODER | dict(tie_word_embeddings=True)),
    "qwen3_moe": dict(model="Qwen3MoeForCausalLM", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
                      norm_topk_prob=True, decoder_sparse_step=2, **DECODER),
    "qwen3_moe_raw": dict(model="Qwen3MoeForCausalLM", dtype="bfloat16", num_experts=4, num_experts_per_tok=2,
                          moe_intermediate_size=12, norm_topk_prob=False, mlp_only_layers=[1], **DECODER),
    "gemma2": dict(model="Gemma2ForCausalLM", attn_logit_softcapping=3.0, final_logit_softcapping=4.0, **GEMMA),
    "gemma3": dict(model="Gemma3ForCausalLM", dtype="bfloat16", old=True, **GEMMA, rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0))),
    "gemma3_f32": dict(model="Gemma3ForCausalLM", **GEMMA),
    "phi3": dict(model="Phi3ForCausalLM", old=True, sliding_window=13, original_max_position_embeddings=32,
                 **{k: v for k, v in DECODER.items() if k != "head_dim"} | dict(
                     num_attention_heads=2, num_key_value_heads=1, pad_token_id=0, rope_parameters=dict(
                         rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5, short_factor=[1.0, 1.25],
                         long_factor=[1.5, 4.0], original_max_position_embeddings=32))),
    "gpt2": dict(model="GPT2LMHeadModel", **GPT2),
    "gpt2_inverse_layer": dict(model="GPT2LMHeadModel", scale_attn_by_inverse_layer_idx=True, **GPT2),
    "gpt_neox": dict(model="GPTNeoXForCausalLM", dtype="float16", use_parallel_residual=True, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), old=True, **GPT_NEOX),
    "gpt_neox_serial": dict(model="GPTNeoXForCausalLM", use_parallel_residual=False, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.75), **GPT_NEOX),
    "gpt_neo": dict(model="GPTNeoForCausalLM", qk=0.9, vocab_size=48, hidden_size=16, num_layers=2, num_heads=2,
                    intermediate_size=24, window_size=6, attention_types=[[["global", "local"], 1]],
                    max_position_embeddings=80, bos_token_id=1, eos_token_id=2),
    "opt": dict(model="OPTForCausalLM", dtype="float16", **OPT, word_embed_proj_dim=16),
    "opt_post_norm": dict(model="OPTForCausalLM", **OPT, word_embed_proj_dim=12, do_layer_norm_before=False),
    "gpt_oss": dict(model="GptOssForCausalLM", dtype="bfloat16", num_local_experts=4, num_experts_per_tok=2,
                    sliding_window=8, layer_types=["sliding_attention", "full_attention"], **DECODER | dict(
                        intermediate_size=12, rope_parameters=YARN | dict(
                            truncate=False, beta_fast=4.0, beta_slow=1.0))),
    "minimind_1": dict(model="LlamaForCausalLM", minimind=1, rms_norm_eps=1e-5, **DECODER | dict(
        hidden_size=16, num_attention_heads=4, head_dim=4, max_position_embeddings=72, tie_word_embeddings=True)),
    "minimind_2": dict(model="LlamaForCausalLM", minimind=2, rms_norm_eps=1e-5, **DECODER | dict(
        num_attention_heads=4, head_dim=4, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="default", rope_theta=1e6))),
    "minimind_3": dict(model="Qwen3ForCausalLM", minimind=3, dtype="bfloat16", rms_norm_eps=1e-6, **DECODER | dict(
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "bert": dict(model="BertForMaskedLM", **ENCODER),
    "bert_bare": dict(model="BertModel", dtype="float16", **ENCODER),
    "roberta": dict(model="RobertaForMaskedLM", **ENCODER | dict(
        pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1, layer_norm_eps=1e-5)),
    "distilbert": dict(model="DistilBertForMaskedLM", vocab_size=48, dim=16, n_layers=2, n_heads=2, hidden_dim=24,
                       max_position_embeddings=80, pad_token_id=0),
    "modernbert": dict(model="ModernBertForMaskedLM", local_attention=12, layer_types=[
        "full_attention", "sliding_attention"], **ENCODER, cls_token_id=1, sep_token_id=2, bos_token_id=1,
        eos_token_id=2),
    "t5": dict(model="T5ForConditionalGeneration", qk=0.9, feed_forward_proj="relu", tie_word_embeddings=True, **T5),
    "t5_gated": dict(model="T5ForConditionalGeneration", qk=0.9, feed_forward_proj="gated-gelu",
                     tie_word_embeddings=False, **T5),
    "marian": dict(model="MarianMTModel", vocab_size=48, d_model=8, encoder_layers=2, decoder_layers=2,
                   encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
                   max_position_embeddings=80, activation_function="swish", scale_embedding=True, pad_token_id=47,
                   eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=47),
}

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

# Where the sites are: per model_type, blocks by prefix of their values' names, and inside a block the modules whose
# output is added to the residual. `down` is the module that mlp_post is the input of.
LLAMA = dict(blocks={"blocks.": "model.layers."}, attn_out="self_attn.o_proj", mlp_out="mlp.down_proj",
             down="mlp.down_proj", final={"": "model.norm"})
GEMMA_SITES = LLAMA | dict(attn_out="post_attention_layernorm", mlp_out="post_feedforward_layernorm")
BERT = dict(blocks={"blocks.": "bert.encoder.layer."}, attn_out="attention.output.dense", mlp_out="output.dense",
            down="output.dense", final={})
SITES = {
    "llama": LLAMA, "mistral": LLAMA, "qwen2": LLAMA, "qwen3": LLAMA, "phi3": LLAMA,
    "qwen3_moe": LLAMA | dict(mlp_out="mlp"), "gpt_oss": LLAMA | dict(mlp_out="mlp"),
    "gemma2": GEMMA_SITES, "gemma3_text": GEMMA_SITES,
    "gpt2": dict(blocks={"blocks.": "transformer.h."}, attn_out="attn.c_proj", mlp_out="mlp.c_proj", down="mlp.c_proj",
                 final={"": "transformer.ln_f"}),
    "gpt_neo": dict(blocks={"blocks.": "transformer.h."}, attn_out="attn.attention.out_proj", mlp_out="mlp.c_proj",
                    down="mlp.c_proj", final={"": "transformer.ln_f"}),
    "gpt_neox": dict(blocks={"blocks.": "gpt_neox.layers."}, attn_out="attention.dense", mlp_out="mlp.dense_4h_to_h",
                     down="mlp.dense_4h_to_h", final={"": "gpt_neox.final_layer_norm"}),
    "opt": dict(blocks={"blocks.": "model.decoder.layers."}, attn_out="self_attn.out_proj", mlp_out="fc2", down="fc2",
                final={"": "model.decoder.final_layer_norm|model.decoder.project_out"}),
    "bert": BERT,
    "roberta": BERT | dict(blocks={"blocks.": "roberta.encoder.layer."}),
    "distilbert": dict(blocks={"blocks.": "distilbert.transformer.layer."}, attn_out="attention.out_lin",
                       mlp_out="ffn.lin2", down="ffn.lin2", final={}),
    "modernbert": dict(blocks={"blocks.": "model.layers."}, attn_out="attn.Wo", mlp_out="mlp.Wo", down="mlp.Wo",
                       final={"": "model.final_norm"}),
    "t5": dict(blocks={"encoder.": "encoder.block.", "decoder.": "decoder.block."}, attn_out="layer.0.SelfAttention.o",
               cross_out="layer.1.EncDecAttention.o", mlp_out="layer.[12].DenseReluDense.wo",
               down="layer.[12].DenseReluDense.wo",
               final={"encoder.": "encoder.final_layer_norm", "decoder.": "decoder.final_layer_norm"}),
    "marian": dict(blocks={"encoder.": "model.encoder.layers.", "decoder.": "model.decoder.layers."},
                   attn_out="self_attn.out_proj", cross_out="encoder_attn.out_proj", mlp_out="fc2", down="fc2",
                   final={}),
}


# --- weights ---------------------------------------------------------------------------------------------------------

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


# --- a run that is float64 throughout --------------------------------------------------------------------------------

class Float64(TorchFunctionMode):
    """Whatever asks for float32 by name gets float64: norms, softmax, routers and rotary tables widen themselves."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        widen = lambda x: torch.float64 if x is torch.float32 else x
        if function is torch.Tensor.float:
            return args[0].double()
        return function(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


class NothingNarrow(TorchDispatchMode):
    """The proof of it: no operation may give a floating value narrower than float64."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for value in torch.utils._pytree.tree_leaves(out):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64:
                raise AssertionError(f"{function} gave {value.dtype}")
        return out


@contextlib.contextmanager
def bucket_as_published(wide):
    """T5 truncates a float32 logarithm to find a bucket: that is the definition, not an error."""
    t5 = transformers.models.t5.modeling_t5.T5Attention
    bucket = t5._relative_position_bucket

    def float32(*args, **kwargs):
        with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
            return bucket(*args, **kwargs)

    t5._relative_position_bucket = staticmethod(float32 if wide else bucket)
    try:
        yield
    finally:
        t5._relative_position_bucket = staticmethod(bucket)


# --- what is seen ----------------------------------------------------------------------------------------------------

def first(value):
    return value[0] if isinstance(value, tuple) else value


class Recorder:
    """Sites of one run: name -> [rows, ...], by hooks on the public modules and around their eager attention. A text that
    comes in pieces gives a part of each value at a time."""

    def __init__(self, model):
        self.parts = {}
        self.hooks = []
        sites = SITES[model.config.model_type]
        modules = dict(model.named_modules())
        self.block_of = {}  # module of attention -> ("blocks.0.", whether cross)
        for prefix, path in sites["blocks"].items():
            path = path if any(m.startswith(path) for m in modules) else path.split(".", 1)[1]  # a model without a head
            layers = [m for m in modules if re.fullmatch(re.escape(path) + r"\d+", m)]
            for l, block in enumerate(layers):
                self.watch(modules, block, f"{prefix}{l}.", sites, last=l == len(layers) - 1)
        for prefix, path in sites["final"].items():
            for candidate in path.split("|"):
                if modules.get(candidate) is not None:
                    self.output(modules[candidate], prefix + "final")
        self.attention = self.around_attention(model)

    def watch(self, modules, block, name, sites, last):
        def before(_, args, kwargs):
            self.keep(name + "resid_pre", args[0] if args else kwargs["hidden_states"])
        self.hooks.append(modules[block].register_forward_pre_hook(before, with_kwargs=True))
        if last:
            self.output(modules[block], name + "resid_post")
        for path, module in modules.items():
            if not path.startswith(block + "."):
                continue
            inner = path[len(block) + 1:]
            for site in ("attn_out", "cross_out", "mlp_out"):
                if re.fullmatch(sites.get(site, "-"), inner):
                    self.output(module, name + site)
            if re.fullmatch(sites["down"], inner):
                self.hooks.append(module.register_forward_pre_hook(lambda _, args: self.keep(name + "mlp_post", args[0])))
            self.block_of[module] = (name, "EncDecAttention" in inner or "encoder_attn" in inner)

    def output(self, module, name):
        self.hooks.append(module.register_forward_hook(lambda _, args, out: self.keep(name, first(out))))

    def keep(self, name, value):
        self.add(name, value.reshape(-1, value.shape[-1]))

    def add(self, name, part):
        self.parts.setdefault(name, []).append(part.detach().clone())

    def values(self):
        return {name: self.whole_pattern(parts) if "pattern" in name else torch.cat(parts)
                for name, parts in self.parts.items()}

    @staticmethod
    def whole_pattern(parts):
        """Of [H, rows, keys] each, the last key being the last row's: a cache drops those beyond a window."""
        end, whole = 0, []
        for part in parts:
            end += part.shape[1]
            whole.append(torch.nn.functional.pad(part, (end - part.shape[2], T - end)))
        return torch.cat(whole, dim=1)

    def attended(self, module, query, key, value, weights, out, scale):
        """query, key, value: [1, heads, T, D] after rotary; out: [1, T, H, E]. OPT scales its queries beforehand."""
        name, cross = self.block_of[module]
        sites = ("cross_q", "cross_k", "cross_v", "cross_z") if cross else ("rot_q", "rot_k", "v", "z")
        new = query.shape[2]  # keys and values of before come from the cache
        rows = (query[0].transpose(0, 1) / scale, key[0].transpose(0, 1)[-new:], value[0].transpose(0, 1)[-new:], out[0])
        for site, x in zip(sites, rows):
            self.add(name + site, x)
        self.add(name + ("cross_pattern" if cross else "pattern"), weights[0])

    @contextlib.contextmanager
    def around_attention(self, model):
        code = sys.modules[type(model).__module__]
        if model.config.model_type == "gpt_neo":
            owner, word = code.GPTNeoSelfAttention, "_attn"
        else:
            owner, word = code, "eager_attention_forward"
        public = getattr(owner, word)

        def seen(module, query, key, value, *args, **kwargs):
            out, weights = public(module, query, key, value, *args, **kwargs)
            opt = model.config.model_type == "opt"
            rows = out.transpose(1, 2) if word == "_attn" else out
            self.attended(module, query, key, value, weights, rows, module.scaling if opt else 1.0)
            return out, weights

        setattr(owner, word, seen)
        try:
            yield
        finally:
            setattr(owner, word, public)
            for hook in self.hooks:
                hook.remove()


def run(folder, model_class, inputs, wide, step=T):
    """Every site of a run in float32, or in float64 throughout; the text `step` tokens at a time."""
    stored = json.loads((folder / "config.json").read_text())["dtype"]
    with contextlib.ExitStack() as stack:
        if wide:
            stack.enter_context(Float64())
        torch.set_default_dtype(torch.float64 if wide else torch.float32)
        model = model_class.from_pretrained(folder, dtype=torch.get_default_dtype(), attn_implementation="eager",
                                            experts_implementation="eager").eval()
        for name, buffer in model.named_buffers():
            if name.endswith("embed_scale"):  # Gemma: the scale is rounded to the type of the weights
                buffer.fill_(model.config.hidden_size**0.5)
                buffer.copy_(buffer.to(getattr(torch, stored)))
            if wide and name.endswith("inv_freq"):
                assert buffer.dtype == torch.float64 and not torch.equal(buffer, buffer.to(torch.float16).double())
        recorder = Recorder(model)
        stack.enter_context(bucket_as_published(wide))
        stack.enter_context(recorder.attention)
        stack.enter_context(torch.no_grad())
        if wide:
            stack.enter_context(NothingNarrow())
        cache = {}
        for begin in range(0, T, step):
            whole = step == T
            out = model(**inputs if whole else {"input_ids": inputs["input_ids"][:, begin:begin + step]}, **cache,
                        use_cache=not whole)
            if not whole:
                cache = {"cache": out.cache}
            if hasattr(out, "logits"):
                recorder.add("logits", out.logits[0])
    torch.set_default_dtype(torch.float32)
    return recorder.values()


# --- files -----------------------------------------------------------------------------------------------------------

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


def kind_of(name):
    """"blocks.1.z" -> "z", "decoder.0.cross_z" -> "decoder.cross_z"."""
    return re.sub(r"^blocks\.|(?<=\.)\d+\.", "", re.sub(r"^blocks\.\d+\.", "", name))


def packed(name, value, bidirectional):
    """A pattern as stored: I32 multiples of PATTERN_UNIT; causal ones only the keys 0..t of row t."""
    if not (bidirectional or "cross" in name or name.startswith("encoder.")):
        rows, columns = torch.tril_indices(T, T)
        assert not torch.triu(value, 1).any()
        value = value[:, rows, columns]
    return torch.round(value / PATTERN_UNIT).to(torch.int32).contiguous()


def write(path, tensors, metadata):
    """As safetensors writes, but the same bytes every time."""
    header, data = {"__metadata__": dict(sorted(metadata.items()))}, b""
    for name, tensor in sorted(tensors.items(), key=lambda t: (-t[1].element_size(), t[0])):
        kind = {torch.float64: "F64", torch.int64: "I64", torch.int32: "I32"}[tensor.dtype]
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path.stat().st_size


def random_text(config, random):
    """Token ids by the names expected.safetensors has for them, and the arguments of a run."""
    draw = lambda: torch.randint(3, config.vocab_size - 1, (T,), generator=random)
    if not config.is_encoder_decoder:
        ids = draw()
        return {"ids": ids}, {"input_ids": ids[None]}
    source, target = draw(), draw()
    target[0] = config.decoder_start_token_id
    return {"source_ids": source, "target_ids": target}, {"input_ids": source[None], "decoder_input_ids": target[None]}


def add_errors(errors, exact, plain):
    assert exact.keys() == plain.keys()
    for key, value in exact.items():
        assert value.dtype == torch.float64 and plain[key].dtype == torch.float32, key
        error = (plain[key].double() - value).abs().max().item()
        assert error < 1e-4 * max(1, value.abs().max().item()), (key, error)
        kind = "err32_" + kind_of(key)
        errors[kind] = max(errors.get(kind, 0.0), error)


def expect_same(exact, model_class, inputs, config_text, weights):
    """The same configuration or weights in older words: the public implementation must give the same bits."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(config_text)
        (folder / "model.safetensors").write_bytes(weights.read_bytes())
        again = run(folder, model_class, inputs, wide=True)
        assert all(torch.equal(again[k], exact[k]) for k in exact), "not the same model"


def make(name, model, dtype="float32", qk=1.5, old=False, minimind=0, **config_words):
    model_class = getattr(transformers, model)
    config = model_class.config_class(**config_words)
    seed = zlib.crc32(name.encode())
    target = HERE / name
    work = tempfile.TemporaryDirectory()
    folder = pathlib.Path(work.name) if minimind else target
    built = model_class(config)
    randomise(built, seed, qk)
    built.to(getattr(torch, dtype)).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    random = torch.Generator().manual_seed(seed + 1)
    ids, inputs = random_text(config, random)
    bidirectional = "MaskedLM" in model or model == "BertModel"
    exact = run(folder, model_class, inputs, wide=True)
    # The public implementation's own error, a largest one, varies with the text and with whether it comes whole or in
    # pieces with a cache (phi3 cannot: its frequencies depend on the length so far).
    errors = {}
    whole_only = bidirectional or config.is_encoder_decoder or name == "phi3"
    for step in (T,) if whole_only else (T, 7, 1):
        add_errors(errors, exact, run(folder, model_class, inputs, wide=False, step=step))
    for _ in range(7):
        other = random_text(config, random)[1]
        add_errors(errors, *(run(folder, model_class, other, wide) for wide in (True, False)))

    config_text = (folder / "config.json").read_text()
    if old:
        older = old_spelling(json.loads(config_text))
        expect_same(exact, model_class, inputs, json.dumps(older | {"dtype": dtype}), folder / "model.safetensors")
        (target / "config.old.json").write_text(json.dumps(older, indent=2, sort_keys=True) + "\n")
    if name in OLD_NAMES:
        older = target / "model.old.safetensors"
        safetensors.torch.save_file(old_names(name, safetensors.torch.load_file(folder / "model.safetensors")), older,
                                    metadata={"format": "pt"})
        expect_same(exact, model_class, inputs, config_text, older)
    if minimind:
        write_minimind(minimind, folder, target, json.loads(config_text))
    if minimind == 1:
        exact = {k: interleaved(v, 2) if "rot_" in k else v for k, v in exact.items()}

    stored = {k: packed(k, v, bidirectional) if "pattern" in k else v for k, v in exact.items()} | ids
    about = {"family": name, "transformers": transformers.__version__, "torch": torch.__version__.split("+")[0],
             "causal": "false" if bidirectional else "true", **{k: f"{v:.6e}" for k, v in errors.items()}}
    parts = {"expected.safetensors": stored}
    if config.is_encoder_decoder:
        encoder = {k: v for k, v in stored.items() if k.startswith("encoder.")}
        parts = {"expected_encoder.safetensors": encoder,
                 "expected.safetensors": {k: v for k, v in stored.items() if k not in encoder}}
    sizes = [write(target / file, tensors, about) for file, tensors in parts.items()]
    # How uneven the patterns of the later half are: least, mean and largest entropy of a row.
    entropy = torch.cat([torch.special.entr(v)[:, T // 2:].sum(-1).flatten() for k, v in exact.items() if "pattern" in k])
    print(f"{name:20} {dtype:9} expected {sizes} entropy {entropy.min():.2f} {entropy.mean():.2f} {entropy.max():.2f}")


def main():
    if "--list" in sys.argv:
        return print(*FAMILIES, sep="\n")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in sys.argv[1:] or FAMILIES:
        make(name, **FAMILIES[name])


if __name__ == "__main__":
    main()
