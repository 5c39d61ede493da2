"""Models that read both ways, and models without a head: what each verb says of them, and what it refuses."""

import json
import os
import pathlib
import shutil
import unittest

from program import ProgramTest, rounding

BAD_INPUT, USAGE = 1, 2
FAMILIES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "a", "dog", "ran", "."]
MASKED = "the cat [MASK] on the mat ."
IDS = [2, 5, 6, 4, 8, 5, 9, 13, 3]


class Encoders(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for family in ("bert", "bert_bare", "mistral"):
            folder = cls.path(family)
            os.mkdir(folder)
            for name in ("config.json", "model.safetensors"):
                shutil.copy(FAMILIES / family / name, folder)
            if family == "mistral":
                continue  # runs on ids alone
            words = WORDS + [f"w{i}" for i in range(48 - len(WORDS))]
            pathlib.Path(folder, "vocab.txt").write_text("\n".join(words) + "\n")
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True,
                                                                                "tokenizer_class": "BertTokenizer"}))

    def test_info_says_what_it_is(self):
        for name, causal, head in (("bert", False, True), ("bert_bare", False, False), ("mistral", True, True)):
            document = self.document("info", name)
            self.assertEqual((document["causal"], document["head"]), (causal, head))
        page = self.run_program("info", "bert_bare").out.decode()
        self.assertIn("both ways", page)
        self.assertIn("says no tokens", page)
        self.assertTrue(self.run_program("read", "bert_bare", "-p", "the cat .").out.decode().startswith("what "))

    def test_the_mask_tokens_row_is_where_logits_are(self):
        document = self.document("logits", "bert", "-p", MASKED)
        self.assertEqual([t["id"] for t in document["tokens"]], IDS)
        self.assertEqual((document["row"], document["token_logprob"]), (3, None))
        self.assertEqual(document["next"], self.document("logits", "bert", "-p", MASKED, "--at", "3")["next"])
        self.assertNotEqual(document["next"], self.document("logits", "bert", "-p", MASKED, "--at", "-1")["next"])
        self.assertIn("in place of \"[MASK]\"", self.run_program("logits", "bert", "-p", MASKED).out.decode())

    def test_no_mask_or_several_must_be_chosen(self):
        for text, count in (("the cat sat .", "no [MASK]"), ("the [MASK] [MASK] .", "2 [MASK]")):
            for words in (["logits"], ["why"], ["patch", "--edit", "zero z"], ["sweep", "--edit", "zero z", "--each", "layer"]):
                self.assert_one_line(self.run_program(words[0], "bert", "-p", text, *words[1:]), USAGE, count, "--at")
        self.document("patch", "bert", "-p", "the cat sat .", "--edit", "zero z", "--at", "2")
        self.document("read", "bert", "-p", "the cat sat .")  # needs no such row

    def test_read_shows_the_masked_row_and_says_so(self):
        document = self.document("read", "bert", "-p", MASKED)
        self.assertEqual((document["rows"], document["next_row"]), ([3], 3))
        self.assertIn("mask token read, position 3", self.run_program("read", "bert", "-p", MASKED).err)
        self.assertEqual(document["next"], self.document("logits", "bert", "-p", MASKED, "--top", "5")["next"])
        for head in document["weights"][0]:
            self.assertAlmostEqual(sum(head[0]), 1, delta=rounding(len(head[0])))
            self.assertGreater(min(head[0]), 0)  # both ways
        self.assertEqual(self.document("read", "bert", "-p", "the cat sat .")["rows"], [5])
        page = self.run_program("read", "bert", "-p", MASKED, "--quiet").out.decode()
        self.assertIn('what "[MASK]" read', page)
        self.assertNotIn("next token", page)

    def test_statistics_that_it_has_not_are_refused_by_name(self):
        for family, statistic, reason in (("bert", "copying", "the next token is seen"),
                                          ("bert", "direct", "a norm follows every sum"),
                                          ("bert_bare", "lens", "no head")):
            self.assert_one_line(self.run_program("read", family, "-p", "the cat .", "--stats", statistic), BAD_INPUT,
                                 statistic, reason)
        result = self.run_program("read", "bert_bare", "-p", MASKED, "--stats", "all", "--resid", "--json")
        document = self.strict(result.out)
        self.assertEqual(len(document["resid"]), 3)
        self.assertNotIn("lens", document)
        self.assertIn("left out", result.err)
        self.assertEqual(document["next"], [])

    def test_without_a_head_the_embedding_is_measured(self):
        document = self.document("why", "bert_bare", "-p", "the cat sat .")
        self.assertEqual((document["metric"], document["row"], document["next"]), ("cosine", None, []))
        self.assertEqual(document["base"], 1)
        for key in document["by_key"]:
            self.assertIsNone(key["hide_from_last"])
            self.assertLess(key["hide_from_all"], 0)  # nothing is nearer to itself
        self.assertEqual([r["edit"] for r in document["receipts"]],
                         ["block edge row=0:S,S+1: key=S", "zero z layer=L head=H"])
        tokens = len(document["tokens"])
        self.assertEqual([r["matched"] for r in document["receipts"]], [tokens * (tokens - 1) * 2 * 2, 2 * 2 * tokens])

        patched = self.document("patch", "bert_bare", "-p", "the cat sat .", "--edit", "zero z layer=1", "--metric",
                                "cosine the dog ran .")
        self.assertEqual((patched["metric"], patched["row"], patched["kl"], patched["next_before"]),
                         ("cosine 'the dog ran .'", None, None, []))
        swept = self.document("sweep", "bert_bare", "-p", "the cat sat .", "--edit", "zero z", "--each", "layer",
                              "--metric", "cosine the dog ran .")
        self.assertEqual(swept["base"], patched["base"])
        self.assertEqual(swept["effect"][1], patched["effect"])
        self.assert_one_line(self.run_program("patch", "bert_bare", "-p", "the cat .", "--edit", "zero z", "--metric",
                                              "cosine", "--at", "1"), USAGE, "--at")
        for words in (["logits"], ["why", "--token", "cat"], ["patch", "--edit", "zero z", "--metric", "kl"]):
            self.assert_one_line(self.run_program(words[0], "bert_bare", "-p", MASKED, *words[1:]), BAD_INPUT, "no head")

    def test_cosine_of_a_model_that_reads_left_to_right(self):
        document = self.document("why", "mistral", "--ids", "3,4,5,6", "--metric", "cosine", "--no-heads")
        self.assertEqual(document["base"], 1)
        effects = [key["hide_from_all"] for key in document["by_key"]]
        self.assertTrue(all(e < 0 for e in effects[:3]) and effects[3] == 0, effects)

    def test_a_text_cannot_be_continued(self):
        self.assert_one_line(self.run_program("generate", "bert", "-p", MASKED), BAD_INPUT, "both ways", "continued")

    def test_why_in_place_of_the_mask(self):
        document = self.document("why", "bert", "-p", MASKED, "--contrast", "the dog [MASK] on the mat .")
        self.assertEqual(document["row"], 3)
        for position, key in enumerate(document["by_key"]):
            self.assertEqual(key["hide_from_last"] is None, position == 3)
            self.assertIsNotNone(key["hide_from_all"])
        self.assertNotEqual(document["by_key"][8]["hide_from_last"], 0)  # what comes after is read
        page = self.run_program("why", "bert", "-p", MASKED).out.decode()
        self.assertIn("hidden from all others", page)
        self.assertIn('in place of "[MASK]" (position 3)', page)
        for name in ("why.html", "why.svg", "why.csv"):
            self.assertEqual(self.run_program("why", "bert_bare", "-p", MASKED, "-o", name).status, 0)

    def test_edges_beyond_a_window_match_nothing(self):
        ids = ",".join(str(5 + i % 7) for i in range(20))
        receipt = self.document("patch", "mistral", "--ids", ids, "--edit", "block edge row=15 key=*")["receipts"][0]
        self.assertEqual((receipt["matched"], receipt["changed"]), (7 * 4 * 2, 7 * 4 * 2))  # W x H x L
        self.assert_one_line(self.run_program("patch", "mistral", "--ids", ids, "--edit", "block edge row=15 key=8"),
                             USAGE, "matches nothing", "window")

    def test_reading_under_edits(self):
        for family in ("bert", "bert_bare"):
            document = self.document("read", family, "-p", "the cat sat .", "--edit", "block edge row=-1 key=2 layer=1",
                                     "--stats", "weights,rollout")
            self.assertEqual([(r["edit"], r["matched"], r["changed"]) for r in document["receipts"]],
                             [("block edge layer=1 row=-1 key=2", 2, 2)])
            for head in document["weights"][1]:
                self.assertEqual(head[0][2], 0)
            for head in document["weights"][0]:
                self.assertGreater(head[0][2], 0)
        self.assertEqual(self.document("read", "bert", "-p", "the cat sat .")["receipts"], [])
        page = self.run_program("read", "bert", "-p", "the cat sat .", "--edit", "zero z layer=0").out.decode()
        self.assertIn("read while this was changed", page)
        patched = self.document("read", "bert", "-p", "the cat sat .", "--run", "other=a dog ran .", "--edit",
                                "patch pattern from=other", "--stats", "weights")
        self.assertEqual(patched["weights"], self.document("read", "bert", "-p", "a dog ran .", "--stats", "weights")["weights"])
        self.assert_one_line(self.run_program("read", "bert", "-p", "the cat .", "--run", "other=a dog"), USAGE, "--edit")
        self.assert_one_line(self.run_program("read", "tiny.gguf", "-p", "hello", "--edit", "zero resid_pre layer=1",
                                              "--stats", "direct"), USAGE, "sum of its parts")
        self.assert_one_line(self.run_program("read", "bert", "-p", "the cat .", "--run", "other=a dog ran .", "--edit",
                                              "patch pattern from=other row=1"), USAGE, "whole text")


if __name__ == "__main__":
    unittest.main()
