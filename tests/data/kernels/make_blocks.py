#!/usr/bin/env python3
"""Makes blocks_<type>.bin: stored bytes of one matrix and the f32 numbers they stand for.

Oracle: the Python package `gguf` (0.17 or later, from the Python package index), gguf.quants.dequantize, which is
written independently of this project. Each file is [ROWS * row_bytes stored bytes][ROWS * COLS little-endian f32].

The rows: bytes drawn at random, with scales and minima that are infinite, not a number, subnormal, and as they come;
then with scales as a real file has them; then rows quantised by `gguf` where it can.
"""

import pathlib

import gguf
import numpy as np

ROWS, COLS = 8, 256
TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
         "MXFP4"]
# Where the f16 scales and minima of a block are.
HALVES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def main():
    random = np.random.default_rng(20260101)
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        stored = random.integers(0, 256, (ROWS, COLS // block, size), dtype=np.uint8)
        for row, odd in zip(stored, [np.inf, np.nan, 3e-7, None] + [0.0] * (ROWS - 4)):
            for b in row:
                for at in HALVES.get(name, [0]) if name != "MXFP4" and odd is not None else []:
                    half = np.float16(odd or random.uniform(-0.02, 0.02))
                    b[at : at + 2] = np.frombuffer(half.tobytes(), np.uint8)
        if name == "MXFP4":  # its scale is a power of two
            stored[:, :, 0] = random.integers(100, 140, stored.shape[:2])
            stored[0, :4, 0], stored[1, :2, 0] = [0, 1, 2, 3], [254, 255]
        stored = stored.reshape(ROWS, -1)
        try:
            numbers = random.standard_normal((2, COLS)).astype(np.float32)
            stored[-2:] = gguf.quants.quantize(numbers, kind).reshape(2, -1)
        except NotImplementedError:
            pass  # gguf reads this type but does not write it
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(stored, kind).astype("<f4")
        path = pathlib.Path(__file__).with_name(f"blocks_{name.lower()}.bin")
        path.write_bytes(stored.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()
