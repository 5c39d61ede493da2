"""`why` and `patch`: their documents and files hold what FACES.md says, and what goes wrong says so in one line."""

import csv
import os
import time
import unittest
import xml.etree.ElementTree

from interrupt_test import Session
from program import ProgramTest

BAD_INPUT, USAGE, INTERRUPTED = 1, 2, 130
TEXT = "hello 漢字 😀!"
OTHER = "hello 漢汉 😀?"  # as many tokens
ZERO = ["--edit", "zero z"]


class Patch(ProgramTest):
    def patch(self, *words):
        return self.document("patch", "tiny.gguf", "-p", TEXT, *words)

    def test_document(self):
        document = self.patch("--edit", "block edge row=-1 key=2", "--edit", "zero z layer=1 head=0:2 row=3")
        self.assertEqual((document["verb"], document["model"]["name"]), ("patch", "tiny"))
        self.assertAlmostEqual(document["effect"], document["edited"] - document["base"], delta=1e-6)  # 9 digits each
        self.assertEqual((document["contrast"], document["recovery"]), (None, None))
        self.assertEqual([(r["edit"], r["matched"], r["changed"]) for r in document["receipts"]],
                         [("block edge row=-1 key=2", 2 * 4, 8), ("zero z layer=1 head=0:2 row=3", 2, 2)])
        self.assertEqual((len(document["next_before"]), len(document["next_after"])), (20, 20))
        for name in ("kl", "tvd", "jsd"):
            self.assertGreater(document[name], 0)
        self.assertLess(document["tvd"], 1)

    def test_before_is_what_logits_says(self):
        document = self.patch(*ZERO, "--top", "7")
        self.assertEqual(document["next_before"], self.document("logits", "tiny.gguf", "-p", TEXT, "--top", "7")["next"])
        # Without any metric: the first choice against the second.
        first, second = document["next_before"][:2]
        self.assertAlmostEqual(document["base"], first["logit"] - second["logit"], delta=1e-6)
        self.assertRegex(document["metric"], r"^diff '.*' '.*'$")

    def test_metrics(self):
        top = self.patch(*ZERO, "--top", "all")
        first = top["next_before"][0]
        after = next(c for c in top["next_after"] if c["id"] == first["id"])
        rank = [c["id"] for c in top["next_after"]].index(first["id"])
        for metric, before, edited in (("logit", first["logit"], after["logit"]),
                                       ("logprob", first["logprob"], after["logprob"])):
            document = self.patch(*ZERO, "--metric", f"{metric} {first['id']}")
            self.assertAlmostEqual(document["base"], before, delta=1e-5)
            self.assertAlmostEqual(document["edited"], edited, delta=1e-5)
        document = self.patch(*ZERO, "--metric", f"rank {first['id']}")
        self.assertEqual((document["base"], document["edited"]), (0, rank))
        for metric in ("kl", "tvd", "jsd"):
            document = self.patch(*ZERO, "--metric", metric)
            self.assertEqual((document["metric"], document["base"]), (metric, 0))
            self.assertEqual(document["edited"], top[metric])
        self.assertEqual(self.patch(*ZERO, "--token", "lo")["metric"], "logprob 'lo'")
        self.assertEqual(self.patch(*ZERO, "--token", "lo", "--against", "hel"),
                         self.patch(*ZERO, "--metric", "diff 'lo' 'hel'"))

    def test_at_another_row(self):
        document = self.patch("--edit", "zero z row=-1", "--at", "2")
        self.assertEqual((document["row"], document["effect"]), (2, 0))
        self.assertEqual(self.patch("--edit", "zero z row=2", "--at", "2"),
                         self.patch("--edit", "zero z row=2", "--at", str(2 - len(document["tokens"]))))

    def test_a_null_edit_has_no_effect(self):
        document = self.patch("--edit", "scale edge by=1")
        self.assertEqual([document[name] for name in ("effect", "kl", "tvd", "jsd")], [0, 0, 0, 0])
        self.assertEqual(document["receipts"][0]["changed"], 0)
        page = self.run_program("patch", "tiny.gguf", "-p", TEXT, "--edit", "scale edge by=1").out.decode()
        self.assertIn("exactly 0", page)
        self.assertIn("none changed", page)

    def test_a_whole_run_of_another_text(self):
        # The residual of every layer and row from the contrast: the answer is the contrast's own.
        document = self.patch("--contrast", OTHER, "--edit", "patch resid_post from=contrast layer=-1", "--token", "lo")
        contrast = self.document("patch", "tiny.gguf", "-p", OTHER, *ZERO, "--token", "lo")
        self.assertEqual(document["contrast"], contrast["base"])
        self.assertEqual(document["edited"], contrast["base"])
        self.assertEqual(document["recovery"], 0)
        # The same run by another name and by its ids.
        ids = ",".join(str(t["id"]) for t in self.document("tokens", "tiny.gguf", "-p", OTHER)["tokens"])
        self.assertEqual(self.patch("--contrast-ids", ids, "--edit", "patch resid_post from=contrast layer=-1", "--token", "lo"),
                         document)
        named = [self.patch(*words, "--edit", "patch v from=a.b-1 key=6:9")
                 for words in (["--run", "a.b-1=" + OTHER], ["--run-ids", "a.b-1=" + ids])]
        self.assertEqual(named[0], named[1])
        self.assertNotEqual(named[0]["effect"], 0)

    def test_threads_and_targets_change_no_bit(self):
        words = ("--edit", "block edge row=4: key=1", "--edit", "scale v by=0.5 key=2", "--top", "all")
        base = self.patch(*words)
        for more in (["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            self.assertEqual(self.patch(*words, *more), base, more)

    def test_files(self):
        result = self.run_program("patch", "tiny.gguf", "-p", TEXT, *ZERO, "-o", "p.json", "-o", "p.csv", "-o", "p.svg", "-o", "p.html")
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        with open(self.path("p.json"), "rb") as file:
            self.assertEqual(self.strict(file.read()), self.patch(*ZERO))
        with open(self.path("p.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertGreaterEqual(len(rows), 20)
        self.assertEqual(float(rows[0]["logit_before"]), self.patch(*ZERO)["next_before"][0]["logit"])
        xml.etree.ElementTree.parse(self.path("p.svg"))
        with open(self.path("p.html"), encoding="utf-8") as file:
            self.assertNotIn("http", file.read())


class Why(ProgramTest):
    def why(self, *words):
        return self.document("why", "tiny.gguf", "-p", TEXT, *words)

    def test_document(self):
        document = self.why("--token", "lo")
        tokens = len(document["tokens"])
        self.assertEqual((document["verb"], document["metric"]), ("why", "logprob 'lo'"))
        self.assertIsNone(document["contrast"])
        self.assertEqual([key["position"] for key in document["by_key"]], list(range(tokens)))
        self.assertEqual([key["text"] for key in document["by_key"]], [token["text"] for token in document["tokens"]])
        for key in document["by_key"]:
            self.assertEqual((key["keys_only"], key["values_only"], key["both"]), (None, None, None))
        for reading in ("attention", "rollout", "norm_weighted"):
            self.assertAlmostEqual(sum(key[reading] for key in document["by_key"]), 1, delta=1e-5)
        self.assertIsNone(document["by_key"][-1]["hide_from_last"])  # a row cannot hide from itself
        self.assertEqual([len(layer) for layer in document["by_head"]["zero_z"]], [4, 4])
        self.assertEqual(document["what_ifs"], 2 * (tokens - 1) + 2 * 4)
        self.assertGreater(document["seconds"], 0)
        self.assertEqual(len(document["receipts"]), 3)
        for receipt in document["receipts"]:
            self.assertGreaterEqual(receipt["matched"], receipt["changed"])
            self.assertGreater(receipt["changed"], 0)

    def test_screen(self):
        full = self.why("--token", "lo", "--no-heads")
        screened = self.why("--token", "lo", "--no-heads", "--screen", "--confirm", "3")
        tokens = len(full["tokens"])
        self.assertEqual([key["screened"] for key in full["by_key"]], [None] * tokens)
        scores = [abs(key["screened"]) for key in screened["by_key"]]
        best = sorted(range(tokens - 1), key=lambda s: -scores[s])[:3]
        self.assertEqual((screened["what_ifs"], full["what_ifs"]), (2 * 3, 2 * (tokens - 1)))
        for position, (a, b) in enumerate(zip(full["by_key"][:-1], screened["by_key"])):
            for name in ("hide_from_last", "hide_from_all"):
                self.assertEqual(b[name], a[name] if position in best else None)
            self.assertEqual(b["attention"], a["attention"])
        # As many as there are, when more are asked for.
        self.assertEqual(self.why("--token", "lo", "--no-heads", "--screen", "--confirm", "999")["what_ifs"], full["what_ifs"])
        page = self.run_program("why", "tiny.gguf", "-p", TEXT, "--token", "lo", "--no-heads", "--screen", "--confirm", "3")
        self.assertRegex(b" ".join(page.out.split()), rb"only the [23] positions")
        self.assert_refused(USAGE, [(["why", "tiny.gguf", "-p", TEXT, "--confirm", "3"], "--screen")])
        self.assert_refused(BAD_INPUT, [(["why", "tiny.gguf", "-p", TEXT, "--screen", "--metric", "kl"], "gradient")])

    def test_causes_are_what_patch_finds(self):
        document = self.why("--contrast", OTHER)
        last = len(document["tokens"]) - 1

        def effect(*edits):
            words = [word for edit in edits for word in ("--edit", edit)]
            return self.document("patch", "tiny.gguf", "-p", TEXT, "--contrast", OTHER, *words)["effect"]
        changed = [i for i, (a, b) in enumerate(zip(document["tokens"], self.document("tokens", "tiny.gguf", "-p", OTHER)["tokens"]))
                   if a["id"] != b["id"]]
        for position in (1, changed[0]):
            key = document["by_key"][position]
            self.assertEqual(key["hide_from_last"], effect(f"block edge row={last} key={position}"))
            self.assertEqual(key["hide_from_all"], effect(f"block edge row={position + 1}: key={position}"))
            self.assertEqual(key["keys_only"], effect(f"patch k from=contrast key={position}"))
            self.assertEqual(key["values_only"], effect(f"patch v from=contrast key={position}"))
            self.assertEqual(key["both"], effect(f"patch k from=contrast key={position}", f"patch v from=contrast key={position}"))
        self.assertNotEqual(document["by_key"][changed[0]]["both"], 0)
        self.assertEqual(document["by_key"][changed[0] - 1]["both"], 0)  # what comes before the change is the same
        self.assertEqual(document["by_head"]["zero_z"][1][2], effect("zero z layer=1 head=2"))

    def test_a_contrast_that_is_the_prompt_changes_nothing(self):
        document = self.why("--contrast", TEXT, "--no-heads")
        self.assertEqual(document["contrast"], document["base"])
        for key in document["by_key"]:
            self.assertEqual((key["keys_only"], key["values_only"], key["both"]), (0, 0, 0))

    def test_without_heads_and_at_another_row(self):
        document = self.why("--no-heads", "--at", "3")
        self.assertIsNone(document["by_head"]["zero_z"])
        self.assertEqual(document["row"], 3)
        for key in document["by_key"][4:]:
            self.assertEqual((key["attention"], key["hide_from_last"]), (0, None))

    def test_every_metric(self):
        for metric in ("logit 5", "logprob 5", "prob 5", "prob", "rank", "diff", "diff 5 6", "kl", "tvd", "jsd"):
            with self.subTest(metric=metric):
                document = self.why("--metric", metric, "--no-heads")
                self.assertTrue(document["metric"].startswith(metric.split()[0]))
                result = self.run_program("why", "tiny.gguf", "-p", TEXT, "--metric", metric)
                self.assertEqual((result.status, result.err), (0, ""))
                self.assertIn("hello 漢字 😀!", result.out.decode())

    def test_short_texts(self):
        for text in ("a", "ab", "abc"):
            result = self.run_program("why", "tiny.gguf", "-p", text)
            self.assertEqual((result.status, result.err), (0, ""))
            self.assertNotIn("nan", result.out.decode())
        document = self.document("why", "tiny.gguf", "-p", "a")
        self.assertEqual((document["what_ifs"], document["by_key"][0]["hide_from_last"]), (8, None))

    def test_threads_and_targets_change_no_bit(self):
        def numbers(*more):
            document = self.why("--contrast", OTHER, *more)
            del document["seconds"]
            return document
        base = numbers()
        for more in (["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            self.assertEqual(numbers(*more), base, more)

    def test_files(self):
        result = self.run_program("why", "tiny.gguf", "-p", TEXT, "-o", "w.json", "-o", "w.csv", "-o", "w.svg", "-o", "w.html")
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        with open(self.path("w.json"), "rb") as file:
            document = self.strict(file.read())
        self.assertEqual(document, {**self.why(), "seconds": None})  # a file's bytes do not say how long it took
        with open(self.path("w.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["hide_from_all"]) for row in rows], [key["hide_from_all"] for key in document["by_key"]])
        self.assertEqual((rows[0]["both"], rows[-1]["hide_from_last"]), ("", ""))
        xml.etree.ElementTree.parse(self.path("w.svg"))
        with open(self.path("w.html"), encoding="utf-8") as file:
            page = file.read()
        for part in ("http", "src=", "url("):
            self.assertNotIn(part, page)
        for part in ("漢</span>", "😀</span>", "layer 1 head 3:", "prefers-color-scheme:dark"):
            self.assertIn(part, page)


class Errors(ProgramTest):
    PATCH = ["patch", "tiny.gguf", "-p", "hello you"]
    WHY = ["why", "tiny.gguf", "-p", "hello you"]
    USAGES = [
        (PATCH, "--edit"),
        (PATCH + ["--edit", "blok edge"], "blok"),
        (PATCH + ["--edit", ""], "edit"),
        (PATCH + ["--edit", "zero edge"], "edge"),
        (PATCH + ["--edit", "zero v head=1"], "kv_head="),
        (PATCH + ["--edit", "zero z head=9"], "0 to 3"),
        (PATCH + ["--edit", "zero z layer=2"], "0 to 1"),
        (PATCH + ["--edit", "zero z row=6"], "0 to 5"),
        (PATCH + ZERO + ["--edit", "scale z by=2 layer=1"], "the same cell"),
        (PATCH + ["--edit", "block edge row=1 key=3"], "matches nothing"),
        (PATCH + ["--edit", "patch k from=other key=1"], "'other'"),
        (PATCH + ["--edit", "patch k from=contrast", "--contrast", "no"], "2 tokens"),
        (PATCH + ZERO + ["--metric", "frobnicate"], "frobnicate"),
        (PATCH + ZERO + ["--metric", "logit ' yes'"], "'y' (121)"),
        (PATCH + ZERO + ["--metric", "logit"], "takes 1 token"),
        (PATCH + ZERO + ["--metric", "diff 1"], "takes 2 tokens"),
        (PATCH + ZERO + ["--metric", "logit 260"], "from 0 to 259"),
        (PATCH + ZERO + ["--metric", "logit 'lo"], "quote"),
        (PATCH + ZERO + ["--token", "hello"], "'hel' (257), 'lo' (258)"),
        (PATCH + ZERO + ["--token", ""], "token"),
        (PATCH + ZERO + ["--token", "lo", "--against", "qq"], "'qq'"),
        (PATCH + ZERO + ["--against", "lo"], "--token"),
        (PATCH + ZERO + ["--metric", "kl", "--token", "lo"], "two metrics"),
        (PATCH + ZERO + ["--metric", "kl", "--metric", "tvd"], "--metric"),
        (PATCH + ZERO + ["--at", "6"], "0 to 5"),
        (PATCH + ZERO + ["--at", "-7"], "row -7"),
        (PATCH + ZERO + ["--at", "last"], "--at"),
        (PATCH + ZERO + ["--run", "other"], "NAME"),
        (PATCH + ZERO + ["--run", "=x"], "NAME"),
        (PATCH + ZERO + ["--run", "a b=x"], "NAME"),
        (PATCH + ZERO + ["--run", "clean=x"], "clean"),
        (PATCH + ZERO + ["--run", "other="], "no tokens"),
        (PATCH + ZERO + ["--contrast", ""], "no tokens"),
        (PATCH + ZERO + ["--run", b"other=caf\xe9"], "byte 3 is 0xE9"),
        (PATCH + ZERO + ["--run", "a=x", "--run", "a=y"], '"a"'),
        (PATCH + ZERO + ["--contrast", "x", "--run", "contrast=y"], '"contrast"'),
        (PATCH + ZERO + ["--contrast", "x", "--contrast-ids", "1"], '"contrast"'),
        (PATCH + ZERO + ["--run-ids", "a=1,x"], "--run-ids"),
        (PATCH + ZERO + ["-o", "out.npz"], ".json .csv .svg .html"),
        (WHY + ["--contrast", "hello"], "2 tokens and the text 6"),
        (WHY + ["--edit", "zero z"], "--edit"),
        (WHY + ["--metric", "frobnicate"], "frobnicate"),
        (WHY + ["--token", "hello"], "'hel' (257), 'lo' (258)"),
        (WHY + ["--against", "lo"], "--token"),
        (WHY + ["--at", "6"], "0 to 5"),
    ]
    BAD_INPUTS = [
        (["why", "tiny.gguf", "-p", ""], "empty"),
        (["patch", "tiny.gguf", "-p", ""] + ZERO, "empty"),
        (["why", "tiny.gguf", "-p", "a" * 257], "257 tokens"),
        (PATCH + ZERO + ["--contrast", "a" * 257], "257 tokens"),
        (PATCH + ZERO + ["--contrast-ids", "1,260"], "place 1 of --contrast-ids"),
        (PATCH + ZERO + ["--run-ids", "a=-1"], "place 0 of --run-ids"),
    ]

    def test_each(self):
        self.assert_refused(USAGE, self.USAGES)
        self.assert_refused(BAD_INPUT, self.BAD_INPUTS)

    def test_help_is_no_error(self):
        for verb in ("why", "patch"):
            result = self.run_program(verb, "--help")
            self.assertEqual((result.status, result.err), (0, ""))
            self.assertIn(b"--metric", result.out)


class OnATerminal(ProgramTest):
    def test_long_work_is_announced_and_can_be_interrupted(self):
        session = Session(self, ["why", "slow.gguf", "-p", "a" * 700, "-o", "why.html"])
        session.read_until(rb"1,494 what-ifs take about \d+ s and", 120)
        time.sleep(1)
        session.press_ctrl_c()
        self.assertEqual(session.finish(120), INTERRUPTED)
        self.assertIn(b"regard: interrupted", session.seen)
        self.assertFalse(os.path.exists(self.path("why.html")))

    def test_the_width_is_kept(self):
        session = Session(self, ["why", "tiny.gguf", "-p", "hello 漢字 " * 5])
        self.assertEqual(session.finish(), 0)
        text = session.seen.decode()
        self.assertIn("\x1b[38;5;", text)


if __name__ == "__main__":
    unittest.main()
