"""`sweep`: its document and files hold what FACES.md says, its effects are `patch`'s to the last bit, and a sweep that was
stopped at any moment, by whatever, ends with the same file."""

import csv
import io
import os
import random
import subprocess
import time
import unittest

from interrupt_test import Session
from program import PROGRAM, ProgramTest, arrays

BAD_INPUT, USAGE, INTERRUPTED = 1, 2, 130
TEXT = "hello 漢字 😀!"
OTHER = "hello 漢汉 😀?"  # as many tokens


def entries(document):
    """[(indices along the axes, effect)] of a document, flat."""
    found = [((), document["effect"])]
    for extent in document["shape"]:
        nested = []
        for place, values in found:
            assert len(values) == extent, (place, extent)
            nested += [(place + (i,), value) for i, value in enumerate(values)]
        found = nested
    return found


class Sweep(ProgramTest):
    def sweep(self, *words):
        return self.document("sweep", "tiny.gguf", "-p", TEXT, *words)

    def effect_of_patch(self, edit, *words):
        return self.document("patch", "tiny.gguf", "-p", TEXT, "--edit", edit, *words)["effect"]

    def test_document(self):
        document = self.sweep("--edit", "zero z", "--each", "layer,head")
        self.assertEqual((document["verb"], document["model"]["name"]), ("sweep", "tiny"))
        self.assertEqual((document["each"], document["shape"], document["what_ifs"]), (["layer", "head"], [2, 4], 8))
        self.assertEqual([len(layer) for layer in document["effect"]], [4, 4])
        self.assertGreater(document["seconds"], 0)
        tokens = len(document["tokens"])
        self.assertEqual(document["row"], tokens - 1)
        receipt, = document["receipts"]
        # In the last layer only the metric's row passes: the other cells cannot reach the metric.
        self.assertEqual((receipt["edit"], receipt["matched"], receipt["out_of_reach"]),
                         ("zero z", 8 * tokens, 4 * (tokens - 1)))
        self.assertEqual(receipt["changed"], receipt["matched"] - receipt["out_of_reach"])
        for _, effect in entries(document):
            self.assertNotEqual(effect, 0)

    def test_effects_are_what_patch_finds(self):
        contrast = ["--contrast", OTHER]
        last = len(self.document("tokens", "tiny.gguf", "-p", TEXT)["tokens"]) - 1
        for edit, each, words in (("zero z", "layer,head", []),
                                  ("block edge row=-1", "layer,key", []),
                                  ("scale edge by=0.5 head=1:3", "row,layer", ["--metric", "kl"]),
                                  ("patch k from=contrast", "key", contrast),
                                  ("patch v from=contrast layer=1", "kv_head,key", contrast),
                                  ("mean mlp_out", "layer,row", ["--token", "lo"]),
                                  ("permute pattern seed=3", "head", ["--metric", "rank 7"]),
                                  ("patch resid_pre from=contrast", "layer,row", contrast + ["--at", "4"])):
            with self.subTest(edit=edit, each=each):
                document = self.sweep("--edit", edit, "--each", each, *words)
                self.assertEqual(document["each"], each.split(","))
                found = entries(document)
                self.assertEqual(len(found), document["what_ifs"])
                for place, effect in random.Random(1).sample(found, min(5, len(found))) + found[-1:]:
                    chosen = " ".join(f"{axis}={i}" for axis, i in zip(document["each"], place))
                    self.assertEqual(effect, self.effect_of_patch(f"{edit} {chosen}", *words), chosen)
        self.assertGreater(last, 4)

    def test_several_edits_move_together(self):
        document = self.sweep("--contrast", OTHER, "--edit", "patch k from=contrast", "--edit", "patch v from=contrast layer=0",
                              "--each", "key,layer")
        # The second edit has its layer already: only the first one's moves.
        for key, layer in ((6, 0), (8, 1)):
            words = ("--contrast", OTHER, "--edit", f"patch v from=contrast layer=0 key={key}")
            self.assertEqual(document["effect"][key][layer],
                             self.effect_of_patch(f"patch k from=contrast key={key} layer={layer}", *words))
        self.assertEqual([receipt["edit"] for receipt in document["receipts"]],
                         ["patch k from=contrast", "patch v from=contrast layer=0"])

    def test_computed_in_full_it_is_the_same(self):
        for edit, each in (("zero v", "layer,kv_head,key"), ("block edge layer=0", "row,key"), ("freeze pattern", "layer")):
            with self.subTest(edit=edit):
                swept, full = (self.sweep("--edit", edit, "--each", each, *more) for more in ([], ["--full"]))
                self.assertEqual(swept["effect"], full["effect"])
                self.assertEqual((swept["base"], swept["what_ifs"]), (full["base"], full["what_ifs"]))
                for fast, whole in zip(swept["receipts"], full["receipts"]):
                    self.assertEqual(fast["matched"], whole["matched"])
                    self.assertEqual(whole["out_of_reach"], 0)

    def test_memory_threads_and_targets_change_no_bit(self):
        words = ["--edit", "scale z by=2", "--each", "layer,head,row"]
        base = self.sweep(*words)
        for more in (["--memory", "900K"], ["--threads", "1"], ["--threads", "3"], ["--target", self.last_target()]):
            self.assertEqual({**self.sweep(*words, *more), "seconds": base["seconds"]}, base, more)

    def test_a_hidden_edge_has_no_effect_to_speak_of(self):
        document = self.sweep("--edit", "block edge", "--each", "row,key")
        tokens = len(document["tokens"])
        self.assertEqual(document["what_ifs"], tokens * (tokens + 1) // 2)
        for (row, key), effect in entries(document):
            self.assertEqual(effect is None, key > row, (row, key))

    def test_a_null_edit_is_exactly_zero(self):
        for edit, more in (("scale edge by=1", []), ("patch v from=contrast", ["--contrast", TEXT]), ("freeze pattern", [])):
            document = self.sweep("--edit", edit, "--each", "layer", *more)
            self.assertEqual(document["effect"], [0, 0], edit)
            self.assertEqual(document["receipts"][0]["changed"], 0, edit)

    def test_a_page_for_people(self):
        result = self.run_program("sweep", "tiny.gguf", "-p", TEXT, "--edit", "zero z", "--each", "layer,head")
        self.assertEqual((result.status, result.err), (0, ""))
        page = result.out.decode()
        strongest = max(entries(self.sweep("--edit", "zero z", "--each", "layer,head")), key=lambda entry: abs(entry[1]))
        self.assertRegex(page, r"strongest effects\n  layer %d head %d " % strongest[0])
        self.assertRegex(page, r"8 what-ifs in \d+\.\d s")

    def test_files(self):
        words = ["--edit", "block edge", "--each", "row,key"]
        result = self.run_program("sweep", "tiny.gguf", "-p", TEXT, *words, "-o", "s.json", "-o", "s.csv", "-o", "s.npz")
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name], [])
        printed = self.sweep(*words)
        with open(self.path("s.json"), "rb") as file:
            self.assertEqual(self.strict(file.read()), {**printed, "seconds": None})
        with open(self.path("s.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([((int(row["row"]), int(row["key"])), float(row["effect"]) if row["effect"] else None) for row in rows],
                         entries(printed))
        found = arrays(self.path("s.npz"))
        self.assertLessEqual({"effect", "base", "ids", "each", "edits", "metric"}, set(found))
        self.assertEqual(found["effect"][:2], ("<f8", printed["shape"]))
        data, ids = found["effect"][2], found["ids"][2]
        doubles = memoryview(data).cast("d").tolist()
        for (_, effect), exact in zip(entries(printed), doubles):
            self.assertTrue(exact != exact if effect is None else abs(exact - effect) <= 1e-8 * abs(exact), (effect, exact))
        self.assertEqual(memoryview(ids).cast("i").tolist(), [token["id"] for token in printed["tokens"]])


class Errors(ProgramTest):
    SWEEP = ["sweep", "tiny.gguf", "-p", "hello you"]
    ZERO = ["--edit", "zero z"]
    EACH = ["--each", "layer,head"]
    USAGES = [
        (SWEEP + EACH, "no edit to sweep"),
        (SWEEP + ZERO, "--each is missing"),
        (SWEEP + ZERO + ["--each", ""], "axes are layer, head, kv_head, row, key"),
        (SWEEP + ZERO + ["--each", "layer,"], "axes are layer"),
        (SWEEP + ZERO + ["--each", "heads"], "'heads'"),
        (SWEEP + ZERO + ["--each", "head,layer,head"], "head twice"),
        (SWEEP + ZERO + ["--each", "kv_head"], "layer=, head=, row="),
        (SWEEP + ZERO + ["--each", "key"], "key"),
        (SWEEP + ["--edit", "zero z layer=1", "--each", "layer"], "leave layer= out"),
        (SWEEP + ["--edit", "zero y"] + EACH, "zero takes"),
        (SWEEP + ["--edit", "zero z head=4", "--each", "layer"], "0 to 3"),
        (SWEEP + ["--edit", "block edge row=0:2 key=3"] + EACH, "matches nothing"),
        (SWEEP + ZERO + ["--edit", "scale z by=2"] + EACH, "the same cell"),
        (SWEEP + ["--edit", "patch k from=contrast", "--each", "key"], "'contrast'"),
        (SWEEP + ZERO + EACH + ["--memory", "plenty"], "500M or 2G"),
        (SWEEP + ZERO + EACH + ["--memory", "-1G"], "--memory"),
        (SWEEP + ZERO + EACH + ["--memory", "0"], "--memory"),
        (SWEEP + ZERO + EACH + ["--memory", "5 apples"], "5 apples"),
        (SWEEP + ZERO + EACH + ["--memory", "nan"], "--memory"),
        (SWEEP + ZERO + EACH + ["--memory", "1e300"], "--memory"),
        (SWEEP + ZERO + EACH + ["--at", "6"], "0 to 5"),
        (SWEEP + ZERO + EACH + ["--metric", "frobnicate"], "frobnicate"),
        (SWEEP + ZERO + EACH + ["-o", "out.svg"], ".json .npz .csv"),
    ]
    BAD_INPUTS = [
        (["sweep", "tiny.gguf", "-p", ""] + ZERO + EACH, "empty"),
        (SWEEP + ZERO + EACH + ["--memory", "1000"], "--memory"),
        (SWEEP + ZERO + EACH + ["-o", "missing/out.json"], "missing/out.json"),
        # Refused before anything of that size is made: two layers x 256 rows x 256 keys x 4 heads.
        (["sweep", "tiny.gguf", "-p", "a" * 256, "--edit", "block edge", "--each", "layer,head,row,key", "--memory", "20M"],
         "or more, or use a shorter text"),
    ]

    def test_each(self):
        self.assert_refused(USAGE, self.USAGES)
        self.assert_refused(BAD_INPUT, self.BAD_INPUTS)

    def test_help_is_no_error(self):
        result = self.run_program("sweep", "--help")
        self.assertEqual((result.status, result.err), (0, ""))
        for part in (b"--each", b"--memory", b"--full", b".partial"):
            self.assertIn(part, result.out)


class Stopped(ProgramTest):
    """A sweep of a slow model, in many small batches."""

    WORDS = ["sweep", "slow.gguf", "-p", "abcdefghijklmn", "--edit", "zero z", "--each", "layer,head,row",
             "--memory", "2M"]
    COUNT = 24 * 4 * 14
    RECORD = 8 + 8 + 3 * 8 + 8  # index, value, receipt of one edit, check

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([PROGRAM, *cls.WORDS, "-o", "whole.json"], cwd=cls.folder, env=cls.environment(), check=True)
        with open(cls.path("whole.json"), "rb") as file:
            cls.whole = file.read()

    def size(self, name):
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return 0

    def assert_whole(self, name):
        with open(self.path(name), "rb") as file:
            self.assertEqual(file.read(), self.whole)
        self.assertFalse(os.path.exists(self.path(name + ".partial")))

    def test_killed_ten_times_it_ends_with_the_same_file(self):
        chance = random.Random(20)
        before = 0
        for time_killed in range(10):
            process = subprocess.Popen([PROGRAM, *self.WORDS, "-o", "killed.json"], cwd=self.folder, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # A random moment: once a random share of the work is kept, and a little later.
            wanted = self.COUNT * self.RECORD * (time_killed + chance.random()) / 12
            while process.poll() is None and self.size("killed.json.partial") < wanted:
                time.sleep(0.0005)
            time.sleep(chance.random() * 0.005)
            process.kill()
            self.assertEqual(process.wait(), -9, "it had ended before it was killed")
            self.assertFalse(os.path.exists(self.path("killed.json")))
            kept = self.size("killed.json.partial")
            self.assertGreaterEqual(kept, before, "what was kept is gone")
            before = kept
        self.assertGreater(before, self.COUNT * self.RECORD / 2)
        result = self.run_program(*self.WORDS, "-o", "killed.json")
        self.assertEqual((result.status, result.out), (0, b""))
        self.assertRegex(result.err, r"\Aregard: (9|1,[0-3])\d\d of 1,344 what-ifs were done before\n")
        self.assert_whole("killed.json")

    def test_ctrl_c_keeps_what_was_done(self):
        session = Session(self, self.WORDS + ["-o", "stopped.json"])
        while self.size("stopped.json.partial") < self.COUNT * self.RECORD / 8:
            session.read_some()
        session.press_ctrl_c()
        self.assertEqual(session.finish(), INTERRUPTED)
        self.assertIn(b"regard: interrupted", session.seen)
        self.assertFalse(os.path.exists(self.path("stopped.json")))

        # Another command does not touch what was kept, and says so.
        with open(self.path("stopped.json.partial"), "rb") as file:
            kept = file.read()
        for other in (["--metric", "kl"], ["--at", "5"], ["--full"]):
            self.assert_one_line(self.run_program(*self.WORDS, *other, "-o", "stopped.json"), BAD_INPUT,
                                 "stopped.json.partial", "another command")
        words = [word.replace("zero z", "zero z row=3:") for word in self.WORDS if word != "layer,head,row"]
        words.insert(words.index("--each") + 1, "layer,head")
        self.assert_one_line(self.run_program(*words, "-o", "stopped.json"), BAD_INPUT, "stopped.json.partial")
        with open(self.path("stopped.json.partial"), "rb") as file:
            self.assertEqual(file.read(), kept)

        # What decides no bit may differ: threads, memory, a file more.
        result = self.run_program(*self.WORDS[:-1], "4M", "--threads", "1", "--quiet", "-o", "stopped.json", "-o", "more.csv")
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        self.assert_whole("stopped.json")
        with open(self.path("more.csv"), newline="", encoding="utf-8") as file:
            self.assertEqual([row["effect"] for row in csv.DictReader(file)][-1:],
                             [str(self.strict(self.whole)["effect"][-1][-1][-1])])

    def test_a_file_that_is_no_journal_is_left_alone(self):
        with open(self.path("mine.json.partial"), "wb") as file:
            file.write(b"notes of mine\n")
        result = self.run_program(*self.WORDS, "-o", "mine.json")
        self.assert_one_line(result, BAD_INPUT, "mine.json.partial")
        with open(self.path("mine.json.partial"), "rb") as file:
            self.assertEqual(file.read(), b"notes of mine\n")


if __name__ == "__main__":
    unittest.main()
