#!/usr/bin/env python3
"""Writes the small tokenizers of this folder, one of each kind, and expected.json: texts, and the ids that the public
implementations give. Needs `tokenizers` 0.23.3, `sentencepiece` 0.2.3 and `transformers` 5.24; run by hand, the files are
kept. Nothing here is computed by regard."""

import base64
import io
import json
import pathlib
import random
import shutil
import sys

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools"))
from compare_tokenizers import random_text  # noqa: E402

ENGLISH = """When Mary and John went to the store, John gave a drink to Mary. It's what they'd do, isn't it? We've seen that
they'll often say "don't" and I'm sure you're right. def main(argc, argv):\n    for i in range(10):\n        print(i + 1)\n
The quick brown fox jumps over the lazy dog 1234567890 times, and the other foxes were not there. HELLO World, THE END.
Le café est très bon, naïve façade; Ünal über Straße. 我昨天买了一个苹果，它的屏幕很大。日本語ひらがなカタカナ한국어
""" * 3

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Not one of the expressions that have a scanner of their own.
OTHER = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{Lu}?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s+(?!\S)|\s"


def corpus(seed=3, specials=()):
    rng = random.Random(seed)
    return [ENGLISH] + [random_text(rng, specials) for _ in range(300)]


def special(content, **options):
    return AddedToken(content, special=True, normalized=False, **options)


def template(tokenizer, single):
    names = [part for part in single.split() if not part.startswith("$")]
    return processors.TemplateProcessing(single=single, special_tokens=[(n, tokenizer.token_to_id(n)) for n in set(names)])


def byte_level(cut, normalizer=None, size=420, add_prefix_space=False, use_regex=False, specials=("<|end|>",)):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    level = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)
    t.pre_tokenizer = pre_tokenizers.Sequence([cut, level]) if cut else level
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([special(s) if isinstance(s, str) else s for s in specials])
    return t


def split(expression):
    return pre_tokenizers.Split(Regex(expression), "isolated")


def character_bpe(normalizer, pre_tokenizer, byte_fallback=True, size=500, **options):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback, **options))
    t.normalizer = normalizer
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizer
    start = ["<pad>", "<eos>", "<bos>", "<unk>"]
    if byte_fallback:
        start += [f"<0x{b:02X}>" for b in range(256)]
    marks = {k: v for k, v in options.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")}
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=start, limit_alphabet=70, show_progress=False, **marks))
    data = json.loads(t.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(data))


def with_model(tokenizer, **changes):
    data = json.loads(tokenizer.to_str())
    data["model"].update(changes)
    return Tokenizer.from_str(json.dumps(data))


def llama3():
    t = byte_level(split(QWEN2 % "{1,3}"), specials=("<|begin|>", "<|end|>", "<|eot|>"))
    # Pieces that no merge makes: every second merge that nothing else is built on is dropped.
    data = json.loads(t.to_str())["model"]
    used = {part for merge in data["merges"] for part in merge}
    merges = [m for i, m in enumerate(data["merges"]) if "".join(m) in used or i % 2]
    t = with_model(t, merges=merges, ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(t, "<|begin|> $A")])
    return t


def neox():
    t = byte_level(None, normalizers.NFC(), use_regex=True, specials=("<|endoftext|>", "<|padding|>"))
    # GPT-NeoX adds runs of spaces; ModernBERT a mask that takes the space before it.
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False), special("[CLS]"), special("[SEP]")])
    t.post_processor = template(t, "[CLS] $A [SEP]")
    return t


def roberta():
    t = byte_level(None, use_regex=True, add_prefix_space=True,
                   specials=("<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True, normalized=False)))
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")),
                                                    add_prefix_space=True)
    return t


def gemma():
    t = character_bpe(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("<unused0>", normalized=False)])
    t.post_processor = template(t, "<bos> $A")
    return t


def llama2():
    t = character_bpe(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([special("<|user|>", rstrip=True)])  # as Phi-3 has them
    t.post_processor = template(t, "<bos> $A <eos>")
    return t


def metaspace(scheme):
    t = character_bpe(normalizers.NFKC(), pre_tokenizers.Metaspace(prepend_scheme=scheme, split=scheme != "first"))
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return t


def bert(normalizer=normalizers.BertNormalizer(lowercase=True), cut=pre_tokenizers.BertPreTokenizer()):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    t.normalizer = normalizer
    t.pre_tokenizer = cut
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=500, limit_alphabet=90, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = template(t, "[CLS] $A [SEP]")
    return t


def cased():
    t = bert(normalizers.Sequence([normalizers.Nmt(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip(),
                                   normalizers.Replace(Regex(r"\d{2,}"), "#")]),
             pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next")]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_tokens([AddedToken("Mary", single_word=True), AddedToken("ＦＯＸ", normalized=False, single_word=True)])
    return t


def suffixed():
    t = character_bpe(normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]),
                      pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(),
                                               pre_tokenizers.Punctuation("contiguous")]),
                      byte_fallback=False, end_of_word_suffix="</w>")
    t = with_model(t, fuse_unk=False)
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return t


def prefixed():
    return character_bpe(normalizers.Lowercase(), pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\s+"), "removed"), pre_tokenizers.Split(",", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"\w+"), "contiguous", invert=True)]),
        byte_fallback=False, continuing_subword_prefix="##")


RULES = [("FB01", "66 69"), ("2460", "31"), ("A0", "20"), ("3000", "20"), ("65 301", "E9"), ("A", "20"), ("9", "20"), ("FF21", "41"),
         ("FF42", "62"), ("338F", "6B 67"), ("200B", ""), ("1100 1161", "AC00")]


def sentence_piece(kind, prefix=True, squeeze=True, byte_fallback=False, size=420):
    rules = HERE / "rules.tsv"
    rules.write_text("".join(f"{a}\t{b}\n" for a, b in RULES))
    rng, model = random.Random(3), io.BytesIO()
    lines = [l for l in ENGLISH.split("\n") if l.strip()] * 8
    lines += [t for t in (random_text(rng, []).replace("\n", " ").replace("\0", "") for _ in range(100)) if t.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=size, byte_fallback=byte_fallback,
        add_dummy_prefix=prefix, normalization_rule_tsv=str(rules), remove_extra_whitespaces=squeeze,
        character_coverage=0.98, minloglevel=2, pad_id=3, hard_vocab_limit=False)
    rules.unlink()
    return model.getvalue()


def normalizer_charsmap(model):
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model)
    return proto, base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def t5(model):
    proto, charsmap = normalizer_charsmap(model)
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=proto.trainer_spec.unk_id))
    data = json.loads(t.to_str())
    data["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": charsmap},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    t = Tokenizer.from_str(json.dumps(data))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.add_special_tokens([special("</s>"), special("<extra_id_0>", rstrip=True)])
    t.post_processor = template(t, "$A </s>")
    return t


def main():
    for old in HERE.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    rng = random.Random(7)
    tokenizers = {
        "gpt2": byte_level(None, use_regex=True),
        "smollm": byte_level(pre_tokenizers.Digits(individual_digits=True), use_regex=True),
        "qwen2": byte_level(split(QWEN2 % ""), normalizers.NFC()),
        "o200k": byte_level(split(O200K)),
        "expression": byte_level(split(OTHER)),
        "llama3": llama3(), "neox": neox(), "roberta": roberta(), "gemma": gemma(), "llama2": llama2(),
        "metaspace_first": metaspace("first"), "metaspace_always": metaspace("always"),
        "bert": bert(), "cased": cased(), "suffixed": suffixed(), "prefixed": prefixed(),
    }
    models_of = {"spm_unigram": sentence_piece("unigram"), "spm_unigram_bytes": sentence_piece("unigram", True, False, True, 640),
                 "spm_bpe": sentence_piece("bpe"), "spm_bpe_bytes": sentence_piece("bpe", False, False, True, 640)}
    tokenizers["t5"] = t5(models_of["spm_unigram"])
    specials = ["<|end|>", "<|begin|>", "<mask>", "[MASK]", "[CLS]", "<bos>", "<|user|>", "\n\n", "<unused0>", "</s>",
                "<extra_id_0>", "Mary", "ＦＯＸ", "    "]
    texts = [random_text(rng, specials) for _ in range(110)]
    texts += ["", " ", "  ", "\n", "Mary", "xMary", " Mary ", "a<mask>b", "a <mask> b", "  <|user|>  hi", "<|user|> \n x",
              "e\u0301e\u0301", "ﬁ①㏀", "\u1100\u1161x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", "a\u0301\u0323\u0301"]
    for name, t in tokenizers.items():
        (HERE / name).mkdir()
        # As the files of models are: without spaces between the signs.
        (HERE / name / "tokenizer.json").write_text(
            json.dumps(json.loads(t.to_str()), ensure_ascii=True, separators=(",", ":")) + "\n")
    expected = {}
    for name, t in tokenizers.items():
        expected[name] = [t.encode(text).ids for text in texts]
    for name, model in models_of.items():
        (HERE / name).mkdir()
        (HERE / name / "tokenizer.model").write_bytes(model)
        (HERE / name / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer", "add_bos_token": false}\n')
        peer = sentencepiece.SentencePieceProcessor(model_proto=model)
        expected[name] = [None if any(s in text for s in ("\0", "</s>")) else peer.encode(text) for text in texts]
    older(tokenizers, models_of["spm_unigram"], texts, expected)
    with open(HERE / "expected.json", "w", encoding="ascii") as out:
        json.dump({"texts": texts, "ids": expected}, out, separators=(",", ":"))
        out.write("\n")


def older(tokenizers, spm, texts, expected):
    """Folders without tokenizer.json, by the classes of `transformers` that read them."""
    from transformers import BertTokenizer, GPT2Tokenizer, MarianTokenizer
    for name, source in (("merges", "gpt2"), ("word_list", "bert")):
        (HERE / name).mkdir()
        tokenizers[source].model.save(str(HERE / name))
    vocabulary = json.loads((HERE / "merges" / "vocab.json").read_text())
    vocabulary["<|endoftext|>"] = len(vocabulary)
    (HERE / "merges" / "vocab.json").write_text(json.dumps(vocabulary))
    (HERE / "merges" / "config.json").write_text('{"model_type": "gpt2", "vocab_size": %d}\n' % (len(vocabulary) + 3))
    (HERE / "word_list" / "tokenizer_config.json").write_text(
        '{"do_lower_case": true, "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]"}\n')
    peer = GPT2Tokenizer(str(HERE / "merges" / "vocab.json"), str(HERE / "merges" / "merges.txt"))
    expected["merges"] = [peer.encode(text) for text in texts]
    peer = BertTokenizer(str(HERE / "word_list" / "vocab.txt"))
    expected["word_list"] = [peer.encode(text) for text in texts]
    # Marian: pieces in another order, one left out, and pieces of the other language.
    proto, _ = normalizer_charsmap(spm)
    pieces = [p.piece for p in proto.pieces if p.type == 1]
    random.Random(5).shuffle(pieces)
    names = ["</s>", "<unk>"] + pieces[1:] + ["▁Haus", "▁Straße", "<pad>"]
    (HERE / "marian").mkdir()
    (HERE / "marian" / "source.spm").write_bytes(spm)
    (HERE / "marian" / "vocab.json").write_text(json.dumps({n: i for i, n in enumerate(names)}))
    (HERE / "marian" / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}\n')
    peer = MarianTokenizer(str(HERE / "marian" / "source.spm"), str(HERE / "marian" / "source.spm"),
                           str(HERE / "marian" / "vocab.json"))
    expected["marian"] = [None if any(s in t for s in ("\0", "</s>", "<pad>", "<unk>")) else peer.encode(t) for t in texts]


main()
