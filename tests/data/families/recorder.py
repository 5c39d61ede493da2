"""What is seen of a run of a public module: its sites, by hooks."""

import contextlib
import re
import sys

import torch

from families import T

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
