"""regard train: the same folder however often it was stopped, and the model that is inside the program."""

import os
import pathlib
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from program import PROGRAM, ProgramTest

FILES = ("config.json", "model.safetensors", "tokenizer.json", "loss.svg")
STEPS = ("--steps", "30", "--save-every", "3", "--quiet")
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Train(ProgramTest):
    def files(self, folder):
        return {name: pathlib.Path(self.path(folder), name).read_bytes() for name in FILES}

    def test_killed_five_times_it_ends_at_the_same_bytes(self):
        document = self.document("train", "whole", *STEPS)
        self.assertEqual((document["steps"], len(document["loss"])), (30, 30))
        self.assertLess(document["loss"][-1], document["loss"][0])
        self.assertEqual([(h["kind"], h["language"]) for h in document["held_out"]],
                         [(k, l) for k in ("sense", "reference", "lookup", "copying", "negation") for l in ("en", "zh")])
        self.assertTrue(all(0 <= h["right"] <= h["asked"] == 500 for h in document["held_out"]))
        self.assertEqual(sorted(os.listdir(self.path("whole"))), sorted(FILES))
        xml.etree.ElementTree.parse(self.path("whole/loss.svg"))

        state = pathlib.Path(self.path("killed"), "training.state")
        for _ in range(5):
            seen = state.stat().st_mtime_ns if state.exists() else 0
            process = subprocess.Popen([PROGRAM, "train", "killed", *STEPS], cwd=self.folder, env=self.environment(),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 120
            while (not state.exists() or state.stat().st_mtime_ns == seen) and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(self.run_program("train", "killed", *STEPS).status, 0)
        self.assertEqual(self.files("killed"), self.files("whole"))

    def test_another_recipe_does_not_go_on(self):
        os.mkdir(self.path("other"))
        pathlib.Path(self.path("other"), "training.state").write_bytes(b"not a state")
        result = self.run_program("train", "other", *STEPS)
        self.assertEqual(result.status, 1)
        self.assertIn("training.state", result.err)
        result = self.run_program("train")
        self.assertEqual(result.status, 2)
        self.assertIn("regard train DIR", result.err)


class Default(ProgramTest):
    def test_it_is_the_one_of_the_source(self):
        path = pathlib.Path(self.document("fetch", "default")["fetched"]["path"])
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            self.assertEqual((path / name).read_bytes(), (ROOT / "models" / "default" / name).read_bytes())
        (path / "model.safetensors").write_bytes(b"spoilt")
        self.document("info", "default")
        self.assertEqual((path / "model.safetensors").read_bytes(),
                         (ROOT / "models" / "default" / "model.safetensors").read_bytes())

    def test_it_answers(self):
        for text, answer in (("mary and tom went to the park , and we called him", "tom"),
                             ("小明 和 小红 去 了 公园 ， 大家 叫 她", "小红"),
                             ("我 吃 了 一个 苹果 ， 它 很", "甜"), ("这 个 电脑 来自 苹果 ， 它 很", "快"),
                             ("k d f a . d f", "a"), ("the door is not open , so it is", "closed")):
            best = self.document("logits", "default", "-p", text, "--top", "1")["next"][0]
            self.assertEqual(best["text"], answer, text)

    def test_why_names_the_cause(self):
        document = self.document("why", "default", "-p", "mary and tom went to the park , and we called him",
                                 "--metric", "diff 'tom' 'mary'")
        strongest = max(document["by_key"][1:-1], key=lambda key: abs(key["hide_from_all"]))
        self.assertEqual(strongest["text"], "tom")

    def test_it_does_not_know_other_words(self):
        result = self.run_program("logits", "default", "-p", "an unheard word")
        self.assertEqual(result.status, 1)
        self.assertIn("unheard", result.err)


if __name__ == "__main__":
    unittest.main()
