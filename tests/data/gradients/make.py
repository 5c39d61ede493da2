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
    found = {name: p.grad for name, p in model.named_parameters()}
    sites = {f"blocks.{l}.resid_pre": out.hidden_states[l].grad[0] for l in range(layers)}
    return loss.item(), found, sites


def worst(plain, exact):
    """The largest error of a tensor beside its largest number, of all tensors; and the largest error of those that are 0
    but for rounding (the bias of keys: a softmax does not see what is added to all scores of a row)."""
    size = {k: v.abs().max().item() for k, v in exact.items()}
    error = {k: (plain[k].double() - v).abs().max().item() for k, v in exact.items()}
    nothing = 1e-12 * max(size.values())
    return (max(error[k] / size[k] for k in exact if size[k] > nothing),
            max((error[k] for k in exact if size[k] <= nothing), default=0.0))


def make(name):
    folder = HERE.parent / "families" / name
    ids = safetensors.torch.load_file(folder / "expected.safetensors")["ids"]
    loss, exact, exact_sites = gradients(folder, ids, True)
    loss32, plain, plain_sites = gradients(folder, ids, False)
    out = HERE / name
    out.mkdir(exist_ok=True)
    narrow = lambda values: {k: v.to(torch.float32).contiguous() for k, v in values.items()}
    # A file of weights, as the model's own is, but of their gradients.
    safetensors.torch.save_file(narrow(exact), out / "model.safetensors", {"format": "pt"})
    weights, zero = worst(plain, exact)
    figures = {"loss": loss, "err32_loss": abs(loss32 - loss), "err32_weights": weights, "err32_zero": zero,
               "err32_sites": worst(plain_sites, exact_sites)[0]}
    safetensors.torch.save_file(narrow(exact_sites), out / "sites.safetensors", {
        **{k: repr(v) for k, v in figures.items()}, "torch": torch.__version__,
        "transformers": transformers.__version__})
    print(name, figures)


if __name__ == "__main__":
    for family in sys.argv[1:] or FAMILIES:
        make(family)
