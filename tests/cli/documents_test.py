"""The JSON documents and files of each verb hold what FACES.md says, and agree with each other."""

import codecs
import csv
import math
import os
import struct
import subprocess
import unittest
import xml.etree.ElementTree

from program import PROGRAM, ProgramTest, arrays

TEXT = "hello 漢字 😀!"


def shape(value):
    return [len(value)] + shape(value[0]) if isinstance(value, list) and value else [0] if isinstance(value, list) else []


def shown(data):
    """Bytes as text: what is not UTF-8 reads \\xE4."""
    escape = lambda error: ("".join(f"\\x{b:02X}" for b in error.object[error.start:error.end]), error.end)
    codecs.register_error("shown", escape)
    return data.decode("utf-8", "shown")


class Documents(ProgramTest):
    def check_common(self, document, verb):
        self.assertRegex(document["regard"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(document["verb"], verb)
        model = document["model"]
        self.assertEqual({k: model[k] for k in ("name", "family", "layers", "heads", "kv_heads", "head_dim", "width")},
                         {"name": "tiny", "family": "llama", "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 16,
                          "width": 64})

    def test_tokens(self):
        document = self.document("tokens", "tiny.gguf", "-p", TEXT)
        self.check_common(document, "tokens")
        tokens = document["tokens"]
        self.assertEqual(b"".join(bytes.fromhex(t["bytes"]) for t in tokens), TEXT.encode())
        self.assertEqual(tokens[0]["text"], "hel")
        partial = [t for t in tokens if t["bytes"] == "e6"]
        self.assertEqual(partial[0]["text"], "\\xE6")
        # The same from a file, from standard input and from the ids.
        with open(self.path("text.txt"), "wb") as file:
            file.write(TEXT.encode())
        self.assertEqual(self.document("tokens", "tiny.gguf", "-f", "text.txt"), document)
        self.assertEqual(self.document("tokens", "tiny.gguf", "-f", "-", stdin=TEXT.encode()), document)
        ids = ",".join(str(t["id"]) for t in tokens)
        self.assertEqual(self.document("tokens", "tiny.gguf", "--ids", ids), document)

    def test_tokens_takes_a_file_byte_for_byte(self):
        for data in (b"\r\na\x00b\n\n", b"\xef\xbb\xbfx ", b""):
            document = self.document("tokens", "tiny.gguf", "-f", "-", stdin=data)
            self.assertEqual(b"".join(bytes.fromhex(t["bytes"]) for t in document["tokens"]), data)

    def test_texts_that_look_like_something_else(self):
        for text in ("", "-x", "--json", "[1,2]", "{}", "%s", "a\nb", "\\n", "'\"", "=", "@file", "<|endoftext|>"):
            document = self.document("tokens", "tiny.gguf", "-p", text)
            self.assertEqual(b"".join(bytes.fromhex(t["bytes"]) for t in document["tokens"]), text.encode(), text)
        self.assertEqual([t["id"] for t in self.document("tokens", "tiny.gguf", "-p", "<|endoftext|>")["tokens"]], [259])

    def test_tokens_of_a_family_that_cannot_run(self):
        document = self.document("tokens", "unknown.gguf", "-p", "hello")
        self.assertEqual((document["model"]["family"], document["model"]["layers"]), ("unheard-of", None))
        self.assertEqual([t["text"] for t in document["tokens"]], ["hel", "lo"])

    def test_info(self):
        document = self.document("info", "tiny.gguf")
        self.check_common(document, "info")
        self.assertEqual(document["tokens"], [])
        self.assertGreaterEqual(len(document["targets"]), 1)
        self.assertEqual(document["bytes"], os.path.getsize(self.path("tiny.gguf")))
        self.assertEqual(document["files"], ["tiny.gguf"])
        self.assertEqual(sum(d["tensors"] for d in document["dtypes"].values()), 2 * 9 + 2)
        self.assertEqual((document["context"], document["window"]), (256, [None, None]))
        self.assertIn("smollm", document["tokenizer"])

    def test_logits(self):
        document = self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "all")
        self.check_common(document, "logits")
        following = document["next"]
        self.assertEqual(sorted(c["id"] for c in following), list(range(260)))
        logits = [c["logit"] for c in following]
        self.assertEqual(logits, sorted(logits, reverse=True))
        lse = math.log(sum(math.exp(x) for x in logits))
        self.assertAlmostEqual(document["logsumexp"], lse, delta=1e-5)
        for c in following:
            self.assertAlmostEqual(c["logprob"], c["logit"] - document["logsumexp"], delta=1e-6)
        # What is said of a token that came is what was said of it before it came.
        tokens = [t["id"] for t in document["tokens"]]
        self.assertEqual(len(document["token_logprob"]), len(tokens) - 1)
        before = self.document("logits", "tiny.gguf", "--ids", ",".join(map(str, tokens[:-1])), "--top", "all")
        expected = next(c["logprob"] for c in before["next"] if c["id"] == tokens[-1])
        self.assertAlmostEqual(document["token_logprob"][-1], expected, delta=1e-6)
        self.assertEqual(len(self.document("logits", "tiny.gguf", "-p", TEXT)["next"]), 20)
        self.assertEqual(self.document("logits", "tiny.gguf", "-p", "x")["token_logprob"], [])

    def test_threads_and_targets_change_no_bit(self):
        words = ("logits", "tiny.gguf", "-p", TEXT * 5, "--top", "all")
        base = self.document(*words)
        for more in (["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            self.assertEqual(self.document(*words, *more), base, more)

    def test_generate(self):
        document = self.document("generate", "tiny.gguf", "-p", "hello", "-n", "12")
        self.check_common(document, "generate")
        self.assertEqual(document["text"], shown(b"".join(bytes.fromhex(g["bytes"]) for g in document["generated"])))
        self.assertGreater(document["prefill_tokens_per_second"], 0)
        self.assertIn(document["stopped"], ("length", "end"))
        # Greedy: each token is the likeliest after those before it.
        ids = [t["id"] for t in document["tokens"]]
        for generated in document["generated"]:
            best = self.document("logits", "tiny.gguf", "--ids", ",".join(map(str, ids)), "--top", "1")["next"][0]
            self.assertEqual(best["id"], generated["id"])
            ids.append(generated["id"])

    def test_generate_draws_the_same_with_the_same_seed(self):
        def draw(*more):
            words = ("generate", "tiny.gguf", "-p", "hello", "-n", "16", "--temperature", "1", *more)
            return self.document(*words)["generated"]
        self.assertEqual(draw("--seed", "7"), draw("--seed", "7"))
        self.assertNotEqual(draw("--seed", "7"), draw("--seed", "8"))
        self.assertEqual(draw("--top-k", "1"), self.document("generate", "tiny.gguf", "-p", "hello", "-n", "16")["generated"])

    def test_generate_stops_at_the_context(self):
        document = self.document("generate", "tiny.gguf", "-p", "a" * 250, "-n", "1000")
        self.assertIn(document["stopped"], ("context", "end"))
        if document["stopped"] == "context":
            self.assertEqual(len(document["generated"]), 7)  # six more that fit, and one after the last

    def test_generate_nothing(self):
        document = self.document("generate", "tiny.gguf", "-p", "a", "-n", "0")
        self.assertEqual((document["generated"], document["text"], document["stopped"]), ([], "", "length"))
        self.assertIsNone(document["decode_tokens_per_second"])

    def test_generate_prints_the_text_alone(self):
        document = self.document("generate", "tiny.gguf", "-p", "hello", "-n", "9")
        result = self.run_program("generate", "tiny.gguf", "-p", "hello", "-n", "9")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(result.out, b"".join(bytes.fromhex(g["bytes"]) for g in document["generated"]) + b"\n")

    def test_chat_uses_the_template(self):
        document = self.document("generate", "chat.gguf", "-p", "hello", "-n", "1", "--chat", "--system", "be brief")
        text = b"".join(bytes.fromhex(t["bytes"]) for t in document["tokens"]).decode()
        self.assertEqual(text, "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
                               "<|im_start|>assistant\n")

    def test_models(self):
        document = self.document("models")
        self.assertEqual((document["model"], document["tokens"]), (None, []))
        inside, *others = document["models"]
        self.assertEqual((inside["name"], inside["here"], inside["download_bytes"]), ("default", True, 0))
        self.assertEqual({m["name"] for m in others}, {"smollm2", "gemma3-270m", "minilm"})
        self.assertFalse(any(m["here"] for m in others))
        self.assertTrue(all(m["licence"] and m["download_bytes"] > 1e6 for m in others))

    def test_quiet_and_no_color_are_taken_everywhere(self):
        for words in (["models"], ["info", "tiny.gguf"], ["tokens", "tiny.gguf", "-p", "a"],
                      ["logits", "tiny.gguf", "-p", "a"], ["read", "tiny.gguf", "-p", "a"],
                      ["generate", "tiny.gguf", "-p", "a"]):
            result = self.run_program(*words, "--quiet", "--no-color", "--threads", "1")
            self.assertEqual((result.status, result.err), (0, ""), words)
            self.assertNotIn(b"\x1b", result.out)

    def test_files_hold_the_same_as_standard_output(self):
        for verb in ("tokens", "logits"):
            document = self.document(verb, "tiny.gguf", "-p", TEXT)
            result = self.run_program(verb, "tiny.gguf", "-p", TEXT, "-o", verb + ".json", "-o", verb + ".csv")
            self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
            with open(self.path(verb + ".json"), "rb") as file:
                self.assertEqual(self.strict(file.read()), document)
            with open(self.path(verb + ".csv"), encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            expected = document["tokens" if verb == "tokens" else "next"]
            self.assertEqual([(int(r["id"]), r["text"]) for r in rows], [(e["id"], e["text"]) for e in expected])
        self.run_program("logits", "tiny.gguf", "-p", TEXT, "-o", "logits.npz")
        found = arrays(self.path("logits.npz"))
        self.assertEqual(found["logits"][:2], ("<f4", [260]))
        ids = [token["id"] for token in self.document("tokens", "tiny.gguf", "-p", TEXT)["tokens"]]
        self.assertEqual(list(struct.unpack(f"<{len(ids)}i", found["ids"][2])), ids)
        values = struct.unpack("<260f", found["logits"][2])
        every = self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "all")["next"]
        for candidate in every:
            self.assertEqual(struct.unpack("<f", struct.pack("<f", candidate["logit"]))[0], values[candidate["id"]])


class Read(ProgramTest):
    def f32(self, value):
        return struct.unpack("<f", struct.pack("<f", value))[0]

    def test_defaults(self):
        document = self.document("read", "tiny.gguf", "-p", TEXT)
        n = len(document["tokens"])
        self.assertEqual((document["layers"], document["heads"], document["rows"]), ([0, 1], [0, 1, 2, 3], [n - 1]))
        self.assertEqual(shape(document["lse"]), [2, 4, n])
        self.assertEqual(shape(document["entropy"]), [2, 4, n])
        self.assertEqual(shape(document["column_sum"]), [2, 4, n])
        self.assertEqual(shape(document["weights"]), [2, 4, 1, n])
        self.assertNotIn("resid", document)
        self.assertEqual(len(document["top"]), 8)
        for top in document["top"]:
            self.assertEqual(top["row"], n - 1)
            row = document["weights"][top["layer"]][top["head"]][0]
            best = sorted(range(n), key=lambda key: (-row[key], key))[:8]
            self.assertEqual([(r["key"], r["weight"]) for r in top["reads"]], [(key, row[key]) for key in best])
        for layer in range(2):
            for head in range(4):
                row = document["weights"][layer][head][0]
                self.assertAlmostEqual(sum(row), 1, delta=1e-5)
                self.assertAlmostEqual(sum(document["column_sum"][layer][head]), n, delta=1e-4)
                entropy = -sum(p * math.log(p) for p in row if p > 0)
                self.assertAlmostEqual(document["entropy"][layer][head][-1], entropy, delta=1e-5)

    def test_choices(self):
        whole = self.document("read", "tiny.gguf", "-p", TEXT, "--rows", "all")
        n = len(whole["tokens"])
        part = self.document("read", "tiny.gguf", "-p", TEXT, "--layers", "-1", "--heads", "3,0", "--rows", "2:5",
                             "--top", "2")
        self.assertEqual((part["layers"], part["heads"], part["rows"]), ([1], [3, 0], [2, 3, 4]))
        for h, head in enumerate(part["heads"]):
            self.assertEqual(part["entropy"][0][h], whole["entropy"][1][head])
            self.assertEqual(part["column_sum"][0][h], whole["column_sum"][1][head])
            self.assertEqual(part["weights"][0][h], whole["weights"][1][head][2:5])
        self.assertTrue(all(len(t["reads"]) == 2 for t in part["top"]))
        # A row reads nothing after itself: zeros there, and fewer top reads than asked for near the start.
        self.assertEqual(whole["weights"][0][0][1][2:], [0] * (n - 2))
        self.assertEqual(len(whole["top"][0]["reads"]), 1)

    def test_statistics_and_residuals(self):
        document = self.document("read", "tiny.gguf", "-p", TEXT, "--stats", "all", "--resid", "--rows", "0,-1")
        n = len(document["tokens"])
        for name in ("lse", "entropy", "sink", "sink_share", "distance", "previous", "duplicate", "induction"):
            self.assertEqual(shape(document[name]), [2, 4, n], name)
        self.assertEqual(shape(document["resid"]), [3, 2, 64])
        self.assertEqual(shape(document["copying"]), [2, 4])
        self.assertEqual(shape(document["value_norm"]), [2, 4, n])
        self.assertEqual(shape(document["distances"])[:2], [2, 4])
        self.assertEqual(shape(document["distances"])[2], len(document["distance_edges"]) - 1)
        for layer in range(2):
            for head in range(4):
                self.assertAlmostEqual(sum(document["distances"][layer][head]), n, delta=1e-4)
        only = self.document("read", "tiny.gguf", "-p", TEXT, "--stats", "previous,entropy")
        self.assertEqual(only["previous"], document["previous"])
        for left_out in ("lse", "weights", "top", "column_sum", "resid"):
            self.assertNotIn(left_out, only)
        self.assertEqual(set(only["mean"]), {"previous", "entropy"})

    def test_what_is_made_from_the_statistics(self):
        document = self.document("read", "tiny.gguf", "-p", TEXT, "--stats", "all", "--rows", "3,-1", "--top", "4")
        n = len(document["tokens"])
        self.assertEqual(shape(document["mixing"]), [2, n])
        self.assertEqual(shape(document["norm_weighted"]), [2, 4, 2, n])
        self.assertEqual(shape(document["norm_weighted_column_sum"]), [2, 4, n])
        self.assertEqual(shape(document["rollout"]), [3, 2, n])
        self.assertEqual(shape(document["flow"]), [2, 2, n])
        for l in range(2):
            for r in range(2):
                self.assertAlmostEqual(sum(document["flow"][l][r]) + document["flow_residual"][l][r], 1, delta=1e-5)
        for l in range(2):
            for h in range(4):
                for s in range(n):
                    norm = document["value_norm"][l][h][s]
                    product = self.f32(document["column_sum"][l][h][s] * norm)
                    self.assertAlmostEqual(document["norm_weighted_column_sum"][l][h][s], product, delta=1e-6 * product)
                    for r in range(2):
                        product = document["weights"][l][h][r][s] * norm
                        self.assertAlmostEqual(document["norm_weighted"][l][h][r][s], product, delta=1e-6 * product)
        for r, row in enumerate(document["rows"]):
            self.assertEqual(document["rollout"][2][r], [float(s == row) for s in range(n)])
            for layer in range(3):
                self.assertAlmostEqual(sum(document["rollout"][layer][r]), 1, delta=1e-5)
                self.assertEqual(document["rollout"][layer][r][row + 1:], [0] * (n - 1 - row))
        # One step of rollout from the top: half of itself, half of what the heads read on average.
        mean = [sum(document["weights"][1][h][1][s] for h in range(4)) / 4 for s in range(n)]
        for s in range(n):
            self.assertAlmostEqual(document["rollout"][1][1][s], (mean[s] + (s == n - 1)) / 2, delta=1e-6)

    def test_the_lens_ends_at_the_logits(self):
        read = self.document("read", "tiny.gguf", "-p", TEXT, "--stats", "lens", "--top", "7", "--rows", "2,-1")
        logits = self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "7")
        self.assertEqual(shape(read["lens"]), [3, 2])
        for ours, theirs in zip(read["lens"][2][1]["top"], logits["next"], strict=True):
            self.assertEqual((ours["id"], ours["text"], ours["logit"]), (theirs["id"], theirs["text"], theirs["logit"]))
            self.assertAlmostEqual(ours["logprob"], theirs["logprob"], delta=1e-6)
        for layer in read["lens"]:
            for r, row in enumerate(layer):
                self.assertEqual(row["final"]["id"], read["lens"][2][r]["top"][0]["id"])
                if row["final"]["rank"] < 7:
                    self.assertEqual(row["top"][row["final"]["rank"]]["id"], row["final"]["id"])
        self.assertEqual(read["lens"][2][0]["final"]["rank"], 0)

    def test_direct_effects_add_up_to_the_logit(self):
        words = ("read", "tiny.gguf", "-p", TEXT, "--stats", "direct")
        every = self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "all")["next"]
        logit = {c["id"]: c["logit"] for c in every}
        best = every[0]["id"]
        for more, expected in (([], logit[best]), (["--token", "7"], logit[7]),
                               (["--token", "7", "--against", "9"], logit[7] - logit[9])):
            direct = self.document(*words, *more)["direct"]
            self.assertEqual(direct["token"][0]["id"], 7 if more else best)
            self.assertEqual(direct["against"]["id"] if "--against" in more else direct["against"], 9 if "--against" in more else None)
            self.assertEqual(shape(direct["heads"]), [2, 4, 1])
            self.assertAlmostEqual(direct["total"][0], expected, delta=1e-4)
            parts = direct["embedding"][0] + direct["bias"][0]
            for l in range(2):
                heads = sum(direct["heads"][l][h][0] for h in range(4)) + direct["attention_bias"][l][0]
                self.assertAlmostEqual(heads, direct["attention"][l][0], delta=1e-5)
                parts += direct["attention"][l][0] + direct["mlp"][l][0]
            self.assertAlmostEqual(parts, direct["total"][0], delta=1e-6)

    def test_help_says_what_each_statistic_means(self):
        help_text = self.run_program("read", "--help").out.decode()
        document = self.document("read", "tiny.gguf", "-p", TEXT, "--stats", "all")
        for name in ("rollout", "lens", "direct", "mixing", "norm_weighted", "norm_weighted_column_sum", "column_sum"):
            self.assertRegex(help_text, rf"(?m)^  {name} +\w")
            self.assertIn(name, document)

    def test_arrays_hold_what_json_holds(self):
        words = ("read", "tiny.gguf", "-p", TEXT, "--stats", "all", "--rows", "1,-1", "--top", "3")
        document = self.document(*words)
        self.assertEqual(self.run_program(*words, "-o", "all.npz").status, 0)
        found = arrays(self.path("all.npz"))
        n = len(document["tokens"])
        flat = lambda value: [x for v in value for x in flat(v)] if isinstance(value, list) else [value]
        for name, size in (("rollout", [3, 2, n]), ("mixing", [2, n]), ("norm_weighted", [2, 4, 2, n])):
            self.assertEqual(found[name][:2], ("<f4", size))
            values = struct.unpack(f"<{len(flat(document[name]))}f", found[name][2])
            self.assertEqual(list(values), [self.f32(x) for x in flat(document[name])])
        self.assertEqual(found["lens_id"][:2], ("<i4", [3, 2, 3]))
        self.assertEqual(list(struct.unpack("<18i", found["lens_id"][2])),
                         [c["id"] for l in document["lens"] for r in l for c in r["top"]])
        self.assertEqual(list(struct.unpack("<6q", found["lens_final_rank"][2])),
                         [r["final"]["rank"] for l in document["lens"] for r in l])
        self.assertEqual(found["direct_heads"][:2], ("<f8", [2, 4, 2]))
        for value, told in zip(struct.unpack("<16d", found["direct_heads"][2]), flat(document["direct"]["heads"]), strict=True):
            self.assertAlmostEqual(value, told, delta=1e-8 * abs(told))

    def test_groups(self):
        document = self.document("read", "tiny.gguf", "-p", "hello world", "--stats", "groups,weights", "--groups", "0:2;2:5")
        for layer in range(2):
            for head in range(4):
                row = document["weights"][layer][head][0]
                self.assertAlmostEqual(document["groups"][layer][head][0][0], sum(row[0:2]), delta=1e-6)
                self.assertAlmostEqual(document["groups"][layer][head][0][1], sum(row[2:5]), delta=1e-6)

    def test_the_residual_is_the_one_that_makes_the_logits(self):
        # Law 6: what is read last is what the next token is chosen from; looking changes nothing.
        read = self.document("read", "tiny.gguf", "-p", TEXT, "--resid")
        logits = self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "5")
        self.assertEqual(read["next"], logits["next"])

    def test_threads_targets_and_chunks_change_no_bit(self):
        words = ("read", "tiny.gguf", "-p", TEXT * 13, "--stats", "all")
        def statistics(*more):
            document = self.document(*words, *more)
            return {k: v for k, v in document.items() if k not in ("seconds", "tokens_per_second")}
        base = statistics()
        for more in (["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            self.assertEqual(statistics(*more), base, more)

    def test_files(self):
        document = self.document("read", "tiny.gguf", "-p", TEXT, "--rows", "-2:")
        n = len(document["tokens"])
        files = [self.path("r." + e) for e in ("json", "npz", "csv", "svg", "html")]
        words = [w for f in files for w in ("-o", f)]
        result = self.run_program("read", "tiny.gguf", "-p", TEXT, "--rows", "-2:", *words)
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        with open(files[0], "rb") as file:
            again = self.strict(file.read())
        self.assertEqual(again["weights"], document["weights"])
        found = arrays(files[1])
        self.assertEqual(found["weights"][:2], ("<f4", [2, 4, 2, n]))
        flat = [x for l in document["weights"] for h in l for r in h for x in r]
        self.assertEqual(list(struct.unpack(f"<{len(flat)}f", found["weights"][2])), [self.f32(x) for x in flat])
        self.assertEqual(found["ids"][:2], ("<i4", [n]))
        self.assertEqual(list(struct.unpack(f"<{n}i", found["ids"][2])), [token["id"] for token in document["tokens"]])
        self.assertEqual(found["top_key"][1], [2, 4, 2, 8])
        with open(files[2], encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(r["weight"]) for r in rows], flat)
        self.assertEqual(rows[-1]["key_text"], document["tokens"][-1]["text"])
        xml.etree.ElementTree.parse(files[3])
        with open(files[4], encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertIn("strongest reads", page)

    def test_the_page(self):
        result = self.run_program("read", "tiny.gguf", "-p", TEXT, env={"COLUMNS": "60"})
        self.assertEqual((result.status, result.err), (0, ""))
        text = result.out.decode()
        for part in ("next token", 'what "!" read', "every head", "strongest reads", "layer ", "漢字 😀!"):
            self.assertIn(part, text)
        self.assertRegex(text, r'layer \d head \d: "!" <- ".*" 0\.\d\d')
        self.assertNotIn("\x1b", text)
        coloured = self.run_program("read", "tiny.gguf", "-p", TEXT, env={"CLICOLOR_FORCE": "1", "COLORTERM": "truecolor",
                                                                          "TERM": "xterm"})
        self.assertIn(b"\x1b[38;2;", coloured.out)

    def test_usage(self):
        for words, part in (
                (["--layers", "2"], "there are 2 layers"), (["--heads", "x"], "'x'"), (["--rows", "99"], "99"),
                (["--rows", ""], "row"), (["--stats", "entropi"], "entropi"), (["--stats", ""], "statistic"),
                (["--top", "0"], "--top"), (["--top", "-3"], "--top"), (["--top", "abc"], "--top"),
                (["--stats", "entropy", "--top", "3"], "--stats"), (["--groups", "0:2"], "groups"),
                (["--stats", "groups", "--groups", "0:3;2:4"], "two groups"),
                (["--token", "7"], "direct"), (["--stats", "direct", "--against", "7"], "--token"),
                (["--stats", "direct", "--token", "no such token"], "token"), (["--stats", "lens", "--top", "0"], "--top"),
                (["--stats", "entropy", "-o", "x.csv"], "weights"), (["--layers", "1:1"], "no layer")):
            with self.subTest(words=words):
                self.assert_one_line(self.run_program("read", "tiny.gguf", "-p", TEXT, *words), 2, part)
                self.assertFalse(os.path.exists(self.path("x.csv")))

    def test_many_weights_must_be_named(self):
        text = b"a" * 2000
        result = self.run_program("read", "slow.gguf", "-f", "-", "--rows", "all", "--layers", "0:2", "--json", stdin=text)
        document = self.strict(result.out)
        self.assertEqual(result.status, 0)
        self.assertNotIn("weights", document)
        self.assertIn("--stats", result.err)
        self.assertEqual(len(document["rows"]), 2000)
        self.assert_one_line(self.run_program("read", "slow.gguf", "-f", "-", "--rows", "all", stdin=text), 2, "--rows")


class Pipes(ProgramTest):
    def test_a_reader_that_stops_early_is_no_trouble(self):
        process = subprocess.run(["sh", "-c", f'"{PROGRAM}" tokens tiny.gguf -p "$(head -c 100000 /dev/zero | tr "\\0" a)" | head -n 1'],
                                 cwd=self.folder, env=self.environment(), capture_output=True, check=False)
        self.assertEqual(process.stderr, b"")
        self.assertEqual(process.stdout.count(b"\n"), 1)


if __name__ == "__main__":
    unittest.main()
