#!/usr/bin/env python3
"""Writes peer_byte_level.json and peer_sentencepiece.json: small vocabularies, random texts, and what the reference
implementations make of them. Needs `tokenizers` 0.23.3 and `sentencepiece` 0.2.3; run by hand, the files are kept."""

import io
import json
import random
import unicodedata

import sentencepiece
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

ENGLISH = """When Mary and John went to the store, John gave a drink to Mary. It's what they'd do, isn't it? We've seen that
they'll often say "don't" and I'm sure you're right. def main(argc, argv):\n    for i in range(10):\n        print(i + 1)\n
The quick brown fox jumps over the lazy dog 1234567890 times, and the other foxes were not there. HELLO World, THE END.
""" * 3
POOLS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + " " * 15,
    "etaoin shrdlu ",
    "0123456789.,-+ ",
    " \t\n\r\u00a0\u2003\u3000\x0b\x0c\x85\u2028",
    "'sStTdDmMrReEvVlL\u017f ",
    "!@#$%^&*()_+-=[]{};:\",./<>?|\\`~ ",
    "éèêñçüßøåÉÀ e\u0301a\u0308\u0323n\u0303 \u0344\u212b",
    "我昨天买了一个苹果，它的屏幕很大。日本語ひらがなカタカナ한국어각가\u1100\u1161\u11a8",
    "😀👍🏽👨\u200d👩👧🇨🇳❤\ufe0f",
    "مرحبا שלום हिन्दी ไทย ",
    "₁²³½ⅣⅧ①१२३٣ ",
]
PHRASES = ["don't I'll we've THEY'RE", "  foo(x)\n\n\treturn 0;\r\n", "the other fox", "aaaaaaaaaaaaaaaaaaaaa", "   ", "\n\n\n"]


def random_text(rng):
    out = []
    for _ in range(rng.randint(0, 7)):
        kind = rng.random()
        if kind < 0.65:
            pool = rng.choice(POOLS)
            out.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 10))))
        elif kind < 0.85:
            out.append(rng.choice(PHRASES))
        else:
            for _ in range(rng.randint(1, 4)):
                code = rng.randrange(0x3000) if rng.random() < 0.7 else rng.randrange(0x20000)
                # Later versions of Unicode add letters: only what all implementations know.
                if unicodedata.category(chr(code)) not in ("Cn", "Cs"):
                    out.append(chr(code))
    return "".join(out)


QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def pre_tokenizer(name):
    level = pre_tokenizers.ByteLevel
    if name == "gpt-2":
        return level(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        return pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False, use_regex=True)])
    split = Regex(QWEN2 % ("{1,3}" if name == "llama-bpe" else ""))
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(split, behavior="isolated"), level(add_prefix_space=False, use_regex=False)])


def byte_level():
    rng = random.Random(1)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizer("gpt-2")
    trained.train_from_iterator(
        [ENGLISH] + [random_text(rng) for _ in range(300)],
        trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]]
    # Llama 3 has pieces that no merge makes: drop merges that nothing else is built on.
    used = {part for merge in merges for part in merge}
    fewer = [m for i, m in enumerate(merges) if "".join(m) in used or i % 2]
    result = {"pieces": pieces, "merges": [" ".join(m) for m in merges],
              "merges_llama-bpe": [" ".join(m) for m in fewer], "cases": {}}
    for name in ("gpt-2", "smollm", "qwen2", "llama-bpe"):
        llama = name == "llama-bpe"
        peer = Tokenizer(models.BPE(model["vocab"], [tuple(m) for m in (fewer if llama else merges)], ignore_merges=llama))
        peer.pre_tokenizer = pre_tokenizer(name)
        if name == "qwen2":
            peer.normalizer = normalizers.NFC()
        rng = random.Random(2)
        texts = [random_text(rng) for _ in range(150)]
        result["cases"][name] = [{"text": t, "ids": peer.encode(t, add_special_tokens=False).ids} for t in texts]
    return result


def sentence_piece():
    def train(prefix):
        rng, model = random.Random(3), io.BytesIO()
        lines = [l for l in ENGLISH.split("\n") if l.strip()]
        lines += [t for t in (random_text(rng).replace("\n", " ").replace("\0", "") for _ in range(400)) if t.strip()]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="bpe", vocab_size=1000, byte_fallback=True,
            add_dummy_prefix=prefix, normalization_rule_name="identity", remove_extra_whitespaces=False,
            character_coverage=0.98, user_defined_symbols=["<sep>"], allow_whitespace_only_pieces=True,
            split_by_whitespace=prefix, minloglevel=2)
        return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    result = []
    for prefix in (True, False):
        peer = train(prefix)
        ids = range(peer.get_piece_size())
        pieces = [peer.id_to_piece(i) for i in ids]
        types = [2 if peer.is_unknown(i) else 3 if peer.is_control(i) else 6 if peer.is_byte(i) else
                 4 if pieces[i] == "<sep>" else 1 for i in ids]
        rng = random.Random(4)
        texts = [random_text(rng) + ("<sep>" + random_text(rng) if not prefix and i % 3 == 0 else "") for i in range(150)]
        texts = [t.replace("\0", "") for t in texts]
        result.append({"add_space_prefix": prefix, "pieces": pieces, "scores": [peer.get_score(i) for i in ids],
                       "types": types, "cases": [{"text": t, "ids": peer.encode(t)} for t in texts]})
    return result


for name, make in (("peer_byte_level.json", byte_level), ("peer_sentencepiece.json", sentence_piece)):
    with open(name, "w", encoding="ascii") as out:
        json.dump(make(), out, separators=(",", ":"))
        out.write("\n")
