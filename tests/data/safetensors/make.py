#!/usr/bin/env python3
"""Makes public.safetensors: tensors of several types as the public writer puts them (safetensors 0.8, torch 2.15)."""

import pathlib

import torch
from safetensors.torch import save_file

torch.manual_seed(20260501)
save_file({
    "b.weight": torch.randn(3, 5),
    "a.weight": torch.randn(7, 2).to(torch.float16),
    "c": torch.randn(2, 3, 2).to(torch.bfloat16),
    "scalar": torch.tensor(7, dtype=torch.int64),
    "nothing": torch.zeros(0, 4),
    "mask": torch.tensor([True, False, True]),
    "double": torch.randn(2, dtype=torch.float64),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "größe \"x\"\\": torch.arange(3, dtype=torch.int32),
}, pathlib.Path(__file__).parent / "public.safetensors", metadata={"format": "pt"})
