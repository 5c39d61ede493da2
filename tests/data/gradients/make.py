#!/usr/bin/env python3
"""Makes the gradients that the public implementation gives for small random models of tests/data/families.

    python make.py              all of FAMILIES
    python make.py gpt2 llama   those

Needs transformers 5.24, torch 2.15, safetensors 0.8 (CPU). The loss is the mean of -log p(next token) over the text of
the family's expected.safetensors, in a float64 run throughout (families/float64_run.py). README.md says what is written."""

import contextlib
import json
import pathlib
import sys

import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
from float64_run import Float64, NothingNarrow  # noqa: E402

FAMILIES = ("llama", "llama_bias", "llama_llama3", "llama_yarn", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3",
            "gpt2", "gpt2_inverse_layer", "gpt_neox", "gpt_neox_serial", "gpt_neo", "opt")


def gradients(folder, ids, wide):
    stored = json.loads((folder / "config.json").read_text())["dtype"]
    with contextlib.ExitStack() as stack:
        if wide:
            stack.enter_context(Float64())
        torch.set_default_dtype(torch.float64 if wide else torch.float32)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.get_default_dtype(),
                                                                  attn_implementation="eager").eval()
        for name, buffer in model.named_buffers():
            if name.endswith("embed_scale"):
                buffer.fill_(model.config.hidden_size**0.5)
                buffer.copy_(buffer.to(getattr(torch, stored)))
        if wide:
            stack.enter_context(NothingNarrow())
        out = model(input_ids=ids[None], output_hidden_states=True, use_cache=False)
        layers = model.config.num_hidden_layers
        for state in out.hidden_states[:layers]:
            state.retain_grad()
        logprob = torch.log_softmax(out.logits[0, :-1], -1)
        loss = -logprob[torch.arange(len(ids) - 1), ids[1:]].mean()
        loss.backward()
    # GPT-NeoX files name the head as they always did.
    stored_name = lambda name: "embed_out.weight" if name == "lm_head.weight" and "neox" in folder.name else name
    found = {stored_name(name): p.grad for name, p in model.named_parameters()}
    sites = {f"blocks.{l}.resid_pre": out.hidden_states[l].grad[0] for l in range(layers)}
    return loss.item(), found, sites, model.config


def parts(name, value, config):
    """What a family stores as one tensor, apart: a part may be much smaller than the whole."""
    if "c_attn." in name:  # GPT-2: q, k, v as columns
        return value.chunk(3, dim=-1)
    if "query_key_value." in name:  # GPT-NeoX: head by head
        heads = value.unflatten(0, (config.num_attention_heads, 3, -1))
        return heads.unbind(1)
    if "qkv_proj." in name:  # Phi-3
        d = config.hidden_size // config.num_attention_heads
        return value.split([config.num_attention_heads * d, *[config.num_key_value_heads * d] * 2])
    if "gate_up_proj." in name:
        return value.chunk(2)
    return [value]


def worst(plain, exact, config):
    """The largest error of a tensor beside its largest number, of all tensors; and the largest error of those that are 0
    but for rounding (the bias of keys: a softmax does not see what is added to all scores of a row)."""
    apart = lambda values: {f"{k}.{i}": part for k, v in values.items() for i, part in enumerate(parts(k, v, config))}
    plain, exact = apart(plain), apart(exact)
    size = {k: v.abs().max().item() for k, v in exact.items()}
    error = {k: (plain[k].double() - v).abs().max().item() for k, v in exact.items()}
    nothing = 1e-12 * max(size.values())
    return (max(error[k] / size[k] for k in exact if size[k] > nothing),
            max((error[k] for k in exact if size[k] <= nothing), default=0.0))


def make(name):
    folder = HERE.parent / "families" / name
    ids = safetensors.torch.load_file(folder / "expected.safetensors")["ids"]
    random = torch.Generator().manual_seed(1)
    texts = [ids] + [torch.randint(3, int(ids.max()) + 1, ids.shape, generator=random) for _ in range(7)]
    figures = {"err32_loss": 0.0, "err32_weights": 0.0, "err32_zero": 0.0, "err32_sites": 0.0}
    for text in texts:
        loss, exact, exact_sites, config = gradients(folder, text, True)
        loss32, plain, plain_sites, _ = gradients(folder, text, False)
        weights, zero = worst(plain, exact, config)
        errors = (abs(loss32 - loss), weights, zero, worst(plain_sites, exact_sites, config)[0])
        figures = {key: max(figure, error) for (key, figure), error in zip(figures.items(), errors, strict=True)}
        if text is ids:
            kept = loss, exact, exact_sites
    loss, exact, exact_sites = kept
    figures["loss"] = loss
    out = HERE / name
    out.mkdir(exist_ok=True)
    narrow = lambda values: {k: v.to(torch.float32).contiguous() for k, v in values.items()}
    # A file of weights, as the model's own is, but of their gradients.
    safetensors.torch.save_file(narrow(exact), out / "model.safetensors", {"format": "pt"})
    safetensors.torch.save_file(narrow(exact_sites), out / "sites.safetensors", {
        **{k: repr(v) for k, v in figures.items()}, "torch": torch.__version__,
        "transformers": transformers.__version__})
    print(name, figures)


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        make(family)
