"""Runs of the public modules, in float32 or in float64 throughout."""

import contextlib
import json

import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from families import T
from recorder import Recorder


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
