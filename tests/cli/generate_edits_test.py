"""`generate --edit`: what is made is what the model says under the edits, token by token, and receipts tell of all rows."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from interrupt_test import Session
from program import PROGRAM, ProgramTest

BAD_INPUT, USAGE, INTERRUPTED = 1, 2, 130
TEXT = "hello 漢字 😀!"
OTHER = "hello 漢汉 😀?"  # as many tokens
FAMILIES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"


def edits(*texts):
    return [word for text in texts for word in ("--edit", text)]


class GenerateEdits(ProgramTest):
    def generate(self, *words, model="tiny.gguf", most=8):
        return self.document("generate", model, "-p", TEXT, "-n", str(most), *words)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for family in ("t5", "marian"):
            os.mkdir(cls.path(family))
            for name in ("config.json", "model.safetensors"):
                shutil.copy(FAMILIES / family / name, cls.path(family))

    def test_each_token_is_the_first_choice_of_patch(self):
        tokens = len(self.generate(most=0)["tokens"])
        clean = self.generate()
        for continued, written, more in (
                (["block edge key=2"], ["block edge key=2"], []),
                (["zero z layer=1 head=0:2", "block edge row=-1 key=1"],
                 ["zero z layer=1 head=0:2", f"block edge row={tokens - 1} key=1"], []),
                (["uniform pattern layer=0"], ["uniform pattern layer=0"], []),
                (["mean mlp_out layer=0"], ["mean mlp_out layer=0 from=prompt"], ["--run", "prompt=" + TEXT]),
                (["patch v from=contrast"], [f"patch v from=contrast key=0:{tokens}"], ["--contrast", OTHER])):
            document = self.generate(*edits(*continued), *(more if more[:1] == ["--contrast"] else []))
            self.assertEqual([r["edit"] for r in document["receipts"]], continued)
            ids = [t["id"] for t in document["tokens"]]
            for made in document["generated"]:
                patched = self.document("patch", "tiny.gguf", "--ids", ",".join(map(str, ids)), *edits(*written), *more,
                                        "--top", "1", "--metric", "kl")
                self.assertEqual(patched["next_after"][0]["id"], made["id"], continued)
                ids.append(made["id"])
            # Of the rows that ran: all but the last that was made.
            self.assertEqual([(r["matched"], r["changed"]) for r in document["receipts"]],
                             [(r["matched"], r["changed"]) for r in patched["receipts"]])
            self.assertNotEqual(document["text"], clean["text"], continued)

    def test_null_edits_make_the_same_text(self):
        clean = self.generate()
        self.assertNotIn("receipts", clean)
        for null in ("scale edge by=1", "freeze pattern", "patch z from=clean"):
            document = self.generate(*edits(null))
            self.assertEqual(document["generated"], clean["generated"])
            (receipt,) = document["receipts"]
            self.assertGreater(receipt["matched"], 0)
            self.assertEqual(receipt["changed"], 0)

    def test_receipts_count_the_rows_that_ran(self):
        tokens = len(self.generate(most=0)["tokens"])
        for most in (0, 1, 2, 5):
            document = self.generate(*edits("zero z", "block edge layer=0 head=0 key=2"), most=most)
            rows = tokens + max(0, len(document["generated"]) - (document["stopped"] == "length"))
            self.assertEqual(document["receipts"], [
                {"edit": "zero z", "matched": 2 * 4 * rows, "changed": 2 * 4 * rows},
                {"edit": "block edge layer=0 head=0 key=2", "matched": rows - 2, "changed": rows - 2}])

    def test_sampling_threads_and_targets(self):
        words = [*edits("block edge key=1"), "--temperature", "1", "--seed", "5"]
        base = self.generate(*words)
        clean = self.generate("--temperature", "1", "--seed", "5")
        self.assertNotEqual(base["generated"], clean["generated"])
        for more in (["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            document = self.generate(*words, *more)
            self.assertEqual((document["generated"], document["receipts"]), (base["generated"], base["receipts"]), more)

    def test_remarks_and_files(self):
        words = ["generate", "tiny.gguf", "-p", TEXT, "-n", "8", *edits("zero z head=1", "block edge row=3 key=1 layer=0 head=2")]
        result = self.run_program(*words)
        document = self.document(*words)
        self.assertEqual(result.status, 0)
        self.assertEqual(result.out, b"".join(bytes.fromhex(g["bytes"]) for g in document["generated"]) + b"\n")
        first, second = document["receipts"]
        self.assertEqual(result.err.splitlines(), [
            f"zero z head=1   {first['matched']} cells named, {first['changed']} changed",
            "block edge layer=0 head=2 row=3 key=1   1 cell named, 1 changed"])
        self.assertEqual(self.run_program(*words, "--quiet").err, "")
        self.assertEqual(self.run_program(*words, "-o", "made.json").out, b"")
        with open(self.path("made.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["receipts"], document["receipts"])
        os.remove(self.path("made.json"))

    def test_chat_puts_other_texts_into_the_template_too(self):
        words = ["generate", "chat.gguf", "-n", "1", "--chat", "--system", "be brief"]
        first = lambda *more: [self.document(*words, "--temperature", "30", "--seed", str(seed), *more)["text"]
                               for seed in range(12)]
        other = first("-p", OTHER)
        self.assertEqual(first("-p", TEXT, "--contrast", OTHER, *edits("patch resid_post from=contrast layer=-1 row=-1")), other)
        self.assertNotEqual(first("-p", TEXT), other)

    def test_ctrl_c_keeps_the_document_and_its_receipts(self):
        session = Session(self, ["generate", "slow.gguf", "-p", "hello", "-n", "1000000", "--temperature", "1", "--seed", "3",
                                 *edits("zero z layer=0", "zero z layer=1 row=16000"), "-o", "stopped.json"])
        time.sleep(2)
        session.press_ctrl_c()
        self.assertEqual(session.finish(), INTERRUPTED)
        with open(self.path("stopped.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["stopped"], "interrupted")
        self.assertGreater(document["receipts"][0]["changed"], 0)
        self.assertEqual(document["receipts"][1]["matched"], 0)  # it did not come so far: no fault of the edit
        os.remove(self.path("stopped.json"))

    def test_an_edit_that_the_text_ends_before(self):
        ending = ["generate", "ending.gguf", "-p", TEXT, "-n", "100", *edits("zero z row=60")]
        # A text that ends: the token that is likeliest first is made the last one of a copy of the model.
        first = self.generate(most=6)["generated"]
        self.write_ending_with(first[5]["id"])
        document = self.document("generate", "ending.gguf", "-p", TEXT, "-n", "100")
        self.assertEqual(document["stopped"], "end")
        result = self.run_program(*ending)
        self.assertEqual(result.status, USAGE)
        self.assertRegex(result.err, r"\Azero z row=60   0 cells named, 0 changed\nregard: edit 'zero z row=60' matched "
                                     r"nothing: the text ended before it[^\n]*\n\Z")
        self.assertEqual(result.out, self.run_program("generate", "ending.gguf", "-p", TEXT, "-n", "100").out)
        result = self.run_program(*ending, "--json")  # the document is there, and says so too
        self.assertEqual(result.status, USAGE)
        self.assertEqual(self.strict(result.out)["receipts"], [{"edit": "zero z row=60", "matched": 0, "changed": 0}])

    def write_ending_with(self, token):
        """A copy of tiny.gguf whose text ends with that token."""
        with open(self.path("tiny.gguf"), "rb") as file:
            data = file.read()
        key = b"tokenizer.ggml.eos_token_id"
        at = data.index(key) + len(key) + 4  # its type is uint32
        with open(self.path("ending.gguf"), "wb") as file:
            file.write(data[:at] + token.to_bytes(4, "little") + data[at + 4:])

    def test_encoder_decoders(self):
        source = "3,14,15,9,26,5"
        for family, start in (("t5", 0), ("marian", 47)):  # what they begin with is their padding, too
            words = ["generate", family, "--ids", source, "-n", "6"]
            clean = self.document(*words)
            differs = 0
            for text in ("block edge attention=cross key=0:4", "zero z attention=encoder layer=0", "zero mlp_out row=0:"):
                document = self.document(*words, *edits(text))
                (receipt,) = document["receipts"]
                ids = [start] + [t["id"] for t in document["generated"]]
                ids = ids[:-1] if document["stopped"] == "length" else ids
                patched = self.document("patch", family, "--ids", source, "--decoder-ids", ",".join(map(str, ids)),
                                        *edits(text), "--metric", "kl")
                self.assertEqual(receipt, patched["receipts"][0])
                for step, made in enumerate(document["generated"]):  # each is patch's first choice; padding is never said
                    choice = self.document("patch", family, "--ids", source, *edits(text), "--metric", "kl",
                                           "--decoder-ids", ",".join(map(str, ids[:step + 1])))["next_after"]
                    self.assertEqual(next(c for c in choice if c["id"] != start)["id"], made["id"])
                differs += document["generated"] != clean["generated"]
            self.assertGreater(differs, 0)

    def test_what_is_wrong_is_named(self):
        tiny = lambda *words: ["generate", "tiny.gguf", "-p", TEXT, "-n", "4", *words]
        tokens = len(self.generate(most=0)["tokens"])
        self.assert_refused(USAGE, [
            (tiny(*edits("zro z")), "no action 'zro'"),
            (tiny(*edits("zero z row=99")), f"there are {tokens + 3} rows at most: 0 to {tokens + 2}, or -{tokens} to -1 from the end of the prompt"),
            (tiny(*edits(f"zero z row=-{tokens + 1}")), "there is no row"),
            (tiny(*edits(f"zero z row={tokens + 3}")), "there is no row"),  # the last that is made is not read
            (tiny(*edits("block edge row=2 key=3")), "matches nothing"),
            (tiny(*edits("zero z", "scale z by=2 row=14")), "write the same cell"),
            (tiny(*edits("patch z from=nobody")), "there is no run 'nobody'"),
            (tiny(*edits("patch z from=contrast row=2"), "--contrast", "hel"), "has no position 2"),
            (tiny(*edits("patch z from=contrast"), "--contrast", "hel"), "name the positions: row="),
            (tiny(*edits(f"freeze pattern row={tokens}")), f"the run 'clean' has no position {tokens}"),
            (tiny(*edits("zero z attention=cross")), "attention"),
            (tiny("--contrast", OTHER), 'no --edit takes values from the run "contrast"'),
            (tiny("--run", "a=" + OTHER), 'no --edit takes values from the run "a"'),
            (tiny(*edits("zero z"), "--contrast", OTHER), 'no --edit takes values from the run "contrast"'),
            (tiny(*edits("mean z from=a"), "--run", "a=" + OTHER, "--run-ids", "b=1,2"), 'the run "b"'),
            (["generate", "t5", "--ids", "3,4", *edits("zero z"), "--run-ids", "a=1,2"], 'the run "a"'),
            (tiny(*edits("mean z from=a"), "--run", "=x"), "--run"),
            (["generate", "t5", "--ids", "3,4", *edits("zero mlp_out attention=cross")], "cross attention has no mlp_out"),
            (["generate", "t5", "--ids", "3,4", "-n", "9000000000000000000", *edits("zero z")], "at most 1048576 tokens"),
            (["generate", "t5", "--ids", "3,4", *edits("block edge attention=cross key=2")], "there is no key 2"),
        ])
        self.assert_refused(BAD_INPUT, [
            (tiny(*edits("mean z from=a"), "--run-ids", "a=9999"), "9999"),
            (tiny(*edits("mean z from=a"), "--run", "a=" + "a" * 300), "context is 256"),
            (tiny(*edits("scale mlp_out by=1e38")), "every logit is NaN"),  # overflowed
        ])

    def test_what_was_made_before_an_overflow_is_kept(self):
        tokens = len(self.generate(most=0)["tokens"])
        words = ["generate", "tiny.gguf", "-p", TEXT, "-n", "9", *edits(f"scale mlp_out by=3e38 row={tokens + 2}")]
        result = self.run_program(*words, "-o", "overflow.json")
        self.assertEqual(result.status, BAD_INPUT)
        with open(self.path("overflow.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["stopped"], "error")
        made = len(document["generated"])
        self.assertGreaterEqual(made, 3)
        self.assertLess(made, 9)
        self.assertIn(f"after {made} tokens, which were kept: every logit is NaN", result.err)
        self.assertEqual(document["generated"][:3], self.generate(most=3)["generated"])
        os.remove(self.path("overflow.json"))
        printed = self.run_program(*words)
        self.assertEqual(printed.status, BAD_INPUT)
        self.assertTrue(printed.out.endswith(b"\n"))

    def test_standard_error_need_not_be_writable(self):
        for to in ("2>&-", "2>/dev/full"):
            for words, status in (("-n 3 --edit 'zero z layer=0'", 0), ("-n 3 --edit 'zero z layer=99'", USAGE)):
                done = subprocess.run(f"'{PROGRAM}' generate default --ids 5,6,7 {words} {to}", shell=True, cwd=self.folder,
                                      stdout=subprocess.PIPE, env=self.environment())
                self.assertEqual(done.returncode, status, (to, words))


if __name__ == "__main__":
    unittest.main()
