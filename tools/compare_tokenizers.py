#!/usr/bin/env python3
"""Compares regard's tokenizers with the public implementations, on many texts.

    tools/compare_tokenizers.py [--program build/release/encode_texts] [--texts FILE...] [--random 10000] FOLDER...

Each FOLDER holds a tokenizer: tokenizer.json is compared with `tokenizers`, tokenizer.model or spiece.model (where there
is no tokenizer.json) with `sentencepiece`. Texts: so many random ones of a fixed seed, and the first megabyte of each FILE.
Prints a line for each folder and text: how many differ, and MB/s of both on one thread. Exit status 1 when any differs.
Needs Python's `tokenizers` 0.23.3 and `sentencepiece` 0.2.3, and `ninja -C build/release encode_texts`.
"""

import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

POOLS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + " " * 15,
    "etaoin shrdlu ",
    "0123456789.,-+ ",
    " \t\n\r\u00a0\u2003\u3000\x0b\x0c\x85\u2028",
    "'sStTdDmMrReEvVlL\u017f ",
    "!@#$%^&*()_+-=[]{};:\",./<>?|\\`~ ",
    "éèêñçüßøåÉÀİıǅ e\u0301a\u0308\u0323n\u0303 \u0344\u212b",
    "我昨天买了一个苹果，它的屏幕很大。日本語ひらがなカタカナｶﾞ한국어각가\u1100\u1161\u11a8",
    "😀👍🏽👨\u200d👩👧🇨🇳❤\ufe0f",
    "مرحبا שלום हिन्दी ไทย ",
    "₁²³½ⅣⅧ①१२३٣ﬁﷺＡｂ１㎏",
    "▁ ▁a",
    "\u0000\u0001\u007f\u00ad\u200b\u200e\ufeff\ufffd",
]
PHRASES = ["don't I'll we've THEY'RE it'S", "  foo(x)\n\n\treturn 0;\r\n", "the other fox", "aaaaaaaaaaaaaaaaaaaaa", "   ",
           "\n\n\n", "HelloWorld", "ABCdef", "x" * 120, " ", "\t\t\t", "https://example.org/a/b?c=d&e=f"]


def random_text(rng, specials):
    out = []
    for _ in range(rng.randint(0, 8)):
        kind = rng.random()
        if kind < 0.6:
            pool = rng.choice(POOLS)
            out.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 10))))
        elif kind < 0.75:
            out.append(rng.choice(PHRASES))
        elif kind < 0.85 and specials:
            out.append(rng.choice(specials))
            if rng.random() < 0.3:
                out.append("  ")
        else:
            for _ in range(rng.randint(1, 4)):
                code = rng.randrange(0x3000) if rng.random() < 0.7 else rng.randrange(0x20000)
                # Implementations hold different versions of Unicode: what all of them know.
                if unicodedata.category(chr(code)) not in ("Cn", "Cs") and unicodedata.ucd_3_2_0.category(chr(code)) != "Cn":
                    out.append(chr(code))
    return "".join(out)


class Peer:
    def __init__(self, folder):
        self.folder = folder
        if (folder / "tokenizer.json").exists():
            import tokenizers
            self.peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.peer.no_truncation()
            self.peer.no_padding()
            added = json.load(open(folder / "tokenizer.json", encoding="utf-8")).get("added_tokens", [])
            self.specials = [token["content"] for token in added]
            self.encode = lambda text, special: self.peer.encode(text, add_special_tokens=special).ids
        else:
            import sentencepiece
            file = next(f for f in ("tokenizer.model", "spiece.model") if (folder / f).exists())
            self.peer = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
            self.specials = []
            self.encode = lambda text, special: self.peer.encode(text)
        self.has_template = (folder / "tokenizer.json").exists()


def ours(program, folder, texts, mode):
    data = b"".join(struct.pack("<I", len(t)) + t for t in (text.encode() for text in texts))
    run = subprocess.run([program, str(folder), mode], input=data, capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{folder}: {run.stderr.decode()}")
    result, at, out = [], 0, run.stdout
    while at < len(out):
        (n,) = struct.unpack_from("<I", out, at)
        at += 4
        if n == 0xFFFFFFFF:
            result.append(None)
            continue
        result.append(list(struct.unpack_from(f"<{n}i", out, at)))
        at += 4 * n
    return result, run.stderr.decode().strip().splitlines()[-1]


def compare(program, peer, name, texts, special):
    start = time.perf_counter()
    expected = [peer.encode(text, special) for text in texts]
    seconds = time.perf_counter() - start
    # SentencePiece reads no special token from a text.
    mode = "plain" if not peer.has_template else "special" if special else "bare"
    got, speed = ours(program, peer.folder, texts, mode)
    differing = [i for i in range(len(texts)) if expected[i] != got[i]]
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{peer.folder.name:24} {name:14} {len(texts):6} texts {len(differing):5} differ   regard {speed}; "
          f"peer {size / seconds:.2f} MB/s", flush=True)
    for i in differing[:3]:
        a, b, text = expected[i], got[i] or [], texts[i]
        first = next((k for k in range(min(len(a), len(b))) if a[k] != b[k]), min(len(a), len(b)))
        shown = repr(text) if len(text) < 300 else f"{len(text)} characters"
        print(f"    {shown}\n      peer  {first}: {a[max(0, first - 2):first + 8]}\n      regard {b[max(0, first - 2):first + 8]}"
              f"{'' if got[i] is not None else ' (an error)'}")
    return len(differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/encode_texts")
    parser.add_argument("--texts", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--random", type=int, default=10000)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    differing = 0
    for folder in options.folders:
        peer = Peer(folder)
        rng = random.Random(20)
        texts = [random_text(rng, peer.specials) for _ in range(options.random)]
        if not peer.specials:
            texts = [text.replace("\0", "") for text in texts]  # sentencepiece's Python face ends texts there
        differing += compare(options.program, peer, "random", texts, peer.has_template)
        for path in options.texts:
            text = path.read_bytes()[:1 << 20].decode("utf-8", "ignore")
            # SentencePiece takes sentences: sums of scores over a megabyte leave single precision nothing to compare.
            texts = [text] if peer.has_template else text.split("\n")
            differing += compare(options.program, peer, path.name, texts, False)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
