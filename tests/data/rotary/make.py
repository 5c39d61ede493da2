"""Writes frequencies.txt and cosines.txt, which tests/kernels/rotary_test.cc reads.

The formulas of transformers' modeling_rope_utils (and, for divisors, of ggml's rope with frequency factors), written
anew with NumPy in float64; cosines with mpmath in 40 digits. Nothing here is shared with the C++ code.

Run: python3 make.py   (in this folder; needs numpy and mpmath)
"""
import math

import numpy as np
from mpmath import mp

mp.dps = 40


def default(base, dim):
    return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float64) / dim)


def linear(base, dim, factor):
    return default(base, dim) / factor, 1.0


def dynamic(base, dim, factor, max_position, length):
    length = max(length, max_position)
    base = base * ((factor * length / max_position) - (factor - 1)) ** (dim / (dim - 2))
    return default(base, dim), 1.0


def llama3(base, dim, factor, low, high, old_context):
    inv = default(base, dim)
    wavelen = 2 * np.pi / inv
    scaled = np.where(wavelen > old_context / low, inv / factor, inv)
    smooth = (old_context / wavelen - low) / (high - low)
    smoothed = (1 - smooth) * scaled / factor + smooth * scaled
    medium = ~(wavelen < old_context / high) & ~(wavelen > old_context / low)
    return np.where(medium, smoothed, scaled), 1.0


def yarn(base, dim, factor, context, beta_fast=32, beta_slow=1, truncate=True, attention=None, mscale=None, all_dim=None):
    def correction(rotations):
        return dim * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = correction(beta_fast), correction(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2, dtype=np.float64) - low) / (high - low), 0, 1)
    extrapolation = default(base, dim)
    interpolation = extrapolation / factor
    keep = 1 - ramp
    inv = interpolation * (1 - keep) + extrapolation * keep

    def get_mscale(scale, m=1):
        return 1.0 if scale <= 1 else 0.1 * m * math.log(scale) + 1.0

    if attention is None:
        attention = get_mscale(factor, mscale) / get_mscale(factor, all_dim) if mscale and all_dim else get_mscale(factor)
    return inv, attention


def longrope(base, dim, factor, factors, context, attention=None):
    if attention is None:
        attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(context))
    return default(base, dim) / np.array(factors), attention


def halves(n):
    return [1.0 + 0.5 * i for i in range(n)]


CASES = {
    "none": (default(10000.0, 128), 1.0),
    "none_1e5_64": (default(100000.0, 64), 1.0),
    "none_small": (default(500.0, 6), 1.0),
    "linear": linear(1e6, 256, 8.0),
    "dynamic_within": dynamic(10000.0, 128, 10.0, 2048, 77),
    "dynamic_beyond": dynamic(10000.0, 128, 10.0, 2048, 16384),
    "dynamic_partial": dynamic(10000.0, 32, 2.0, 4096, 5000),
    "llama3": llama3(500000.0, 128, 8.0, 1.0, 4.0, 8192),
    "llama3_small": llama3(500000.0, 64, 32.0, 1.0, 4.0, 8192),
    "yarn": yarn(10000.0, 128, 10.0, 2048),
    "yarn_gpt_oss": yarn(150000.0, 64, 32.0, 4096, truncate=False),
    "yarn_mscale": yarn(10000.0, 64, 40.0, 4096, mscale=1.0, all_dim=0.707),
    "yarn_one_mscale": yarn(10000.0, 64, 40.0, 4096, mscale=1.0),
    "yarn_attention": yarn(1000000.0, 96, 16.0, 2048, attention=0.5),
    "yarn_betas": yarn(10000.0, 128, 4.0, 2048, beta_fast=1000, beta_slow=2),
    "yarn_short_context": yarn(10000.0, 64, 4.0, 5),
    "yarn_shrunk": yarn(10000.0, 64, 0.5, 2048),
    "longrope_short": longrope(10000.0, 96, 32.0, [1.0 + 0.01 * i for i in range(48)], 4096),
    "longrope_long": longrope(10000.0, 96, 32.0, halves(48), 4096),
    "longrope_attention": longrope(10000.0, 96, 32.0, halves(48), 4096, attention=1.25),
    "longrope_not_longer": longrope(10000.0, 96, 1.0, halves(48), 4096),
    "divisors": (default(500000.0, 64) / np.array(halves(32)), 1.0),
}

POSITIONS = [0, 1, 2, 17, 511, 4095, 32767, 65535, 65536, 100000, 999999, 1000000]

with open("frequencies.txt", "w") as out:
    out.write("# name attention_factor inverse...   (make.py)\n")
    for name, (inv, attention) in CASES.items():
        out.write(" ".join([name, repr(float(attention))] + [repr(float(v)) for v in inv]) + "\n")

# The angle is the double product of position and inverse; its cosine times the attention factor, rounded once to f32.
with open("cosines.txt", "w") as out:
    out.write("# name position then cosine and sine of each pair, float32   (make.py)\n")
    for name in ("none_1e5_64", "yarn_gpt_oss"):
        inv, attention = CASES[name]
        for position in POSITIONS:
            row = [name, str(position)]
            for v in inv:
                angle = mp.mpf(float(position * float(v)))
                for f in (mp.cos, mp.sin):
                    row.append(repr(float(np.float32(float(f(angle) * mp.mpf(float(attention)))))))
            out.write(" ".join(row) + "\n")
