#!/usr/bin/env python3
"""Makes the small random models of tests/data/families and the values that the public implementation gives for them.

    python make.py              all families
    python make.py gpt2 t5      those
    python make.py --list       their names

Needs transformers 5.24, torch 2.15, safetensors 0.8 (CPU). Each family is a folder with config.json and
model.safetensors as `save_pretrained` writes them, and expected.safetensors (README.md says what is in it). Weights are
random by a fixed seed; nothing keeps its first value of 0 or 1, so that a bias, a norm, a sink or a position that is
left out shows. The values are those of the public modules, seen by hooks, in a float64 run; the same hooks on plain
float32 runs give the errors `err32_*` that a test may measure itself by. Of them, those of the one run on the very text
go to one_run.json, which is written when all families are made."""

import json
import pathlib
import sys
import tempfile
import zlib

import safetensors.torch
import torch
import transformers

from expected_values import kind_of, packed, write
from families import FAMILIES, T
from float64_run import run
from minimind import interleaved, write_minimind
from older_words import OLD_NAMES, old_names, old_spelling
from random_weights import randomise

HERE = pathlib.Path(__file__).resolve().parent


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
    add_errors(errors, exact, run(folder, model_class, inputs, wide=False, step=T))
    one_run = {kind.removeprefix("err32_"): float(f"{error:.6e}") for kind, error in sorted(errors.items())}
    for step in () if whole_only else (7, 1):
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
    return one_run


def main():
    if "--list" in sys.argv:
        return print(*FAMILIES, sep="\n")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    one_run = {name: make(name, **FAMILIES[name]) for name in sys.argv[1:] or FAMILIES}
    if len(one_run) == len(FAMILIES):
        (HERE / "one_run.json").write_text(json.dumps(one_run, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
