"""expected.safetensors: how values are packed, named and written."""

import json
import re

import torch

from families import T

PATTERN_UNIT = 2.0**-30  # patterns are stored as I32 multiples of this


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
