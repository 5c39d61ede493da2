#!/usr/bin/env python3
"""Makes the files beside it: small stored numbers, and the f32 numbers they stand for.

Oracles: torch 2.15 (views of bytes as 8-bit floats), transformers 5.24 (Fp8Dequantize, convert_moe_packed_tensors). All
numbers little-endian.

  codes.bin           5 x 256 f32: the values of all codes of E4M3, E5M2, E4M3FNUZ, E5M2FNUZ, E8M0
  blocks.bin          E4M3 [6, 8] in blocks of 2 x 4 | 3 x 2 f32 scales | 6 x 8 f32
  mxfp4.bin           U8 [2, 3, 2, 16] | U8 scales [2, 3, 2] | f32 [2 * 3, 64]
"""

import pathlib

import numpy as np
import torch
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

HERE = pathlib.Path(__file__).parent
TYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


def write(name, *arrays):
    (HERE / name).write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))


def main():
    random = np.random.default_rng(20260501)
    codes = torch.arange(256, dtype=torch.uint8)
    write("codes.bin", *[codes.view(t).float().numpy() for t in TYPES])

    stored = random.integers(0, 256, (6, 8), dtype=np.uint8)
    stored[(stored & 0x7F) == 0x7F] = 1  # no NaN
    scales = random.uniform(1e-3, 3, (3, 2)).astype(np.float32)
    scales[2, 1] = 1e-37  # products that are subnormal
    weight = torch.from_numpy(stored).view(torch.float8_e4m3fn)
    wide = Fp8Dequantize(None)._dequantize_one(weight, torch.from_numpy(scales), torch.float32)
    write("blocks.bin", stored, scales, wide.numpy())

    stored = random.integers(0, 256, (2, 3, 2, 16), dtype=np.uint8)
    scales = random.integers(100, 150, (2, 3, 2), dtype=np.uint8)
    scales[0, 0, 0], scales[1, 2, 1] = 1, 250
    wide = convert_moe_packed_tensors(torch.from_numpy(stored), torch.from_numpy(scales), dtype=torch.float32)
    write("mxfp4.bin", stored, scales, wide.transpose(1, 2).contiguous().numpy())


if __name__ == "__main__":
    main()
