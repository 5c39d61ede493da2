"""regard train: the same folder however often it was stopped."""

import fcntl
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from program import PROGRAM, ProgramTest

FILES = ("config.json", "model.safetensors", "tokenizer.json", "loss.svg")
ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = ("--steps", "9", "--batch", "10", "--save-every", "1", "--held-out", "4", "--quiet")


class Train(ProgramTest):
    def files(self, folder):
        return {name: pathlib.Path(self.path(folder), name).read_bytes() for name in FILES}

    def test_killed_five_times_it_ends_at_the_same_bytes(self):
        document = self.document("train", "whole", *STEPS)
        self.assertEqual((document["steps"], len(document["loss"])), (9, 9))
        self.assertLess(document["loss"][-1], document["loss"][0])
        self.assertEqual([(h["kind"], h["language"]) for h in document["held_out"]],
                         [(k, l) for k in ("sense", "reference", "lookup", "copying", "negation") for l in ("en", "zh")])
        self.assertTrue(all(0 <= h["right"] <= h["asked"] == 4 for h in document["held_out"]))
        self.assertEqual(sorted(os.listdir(self.path("whole"))), sorted(FILES))
        xml.etree.ElementTree.parse(self.path("whole/loss.svg"))

        # What is said of it in models/README.md.
        page = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
        self.assertIn(f"{round(document['parameters'], -4):,} numbers", page)
        usage = self.run_program("train", "--help").out.decode()
        steps, sentences = (re.search(rf"{option} .*?\(default (\d+)", usage, re.S)[1] for option in ("--steps", "--batch"))
        self.assertIn(f"{int(steps):,} steps of AdamW on {sentences} sentences each", page)

        table = self.document("bench", "truth", "whole", "--count", "1")
        self.assertEqual(len(table["methods"]), 14)
        result = self.run_program("bench", "truth", "whole", "--count", "1", "-o", "truth.md")
        self.assertEqual((result.status, result.out), (0, b""))
        self.assertIn("| method |", pathlib.Path(self.path("truth.md")).read_text(encoding="utf-8"))

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

    def test_a_text(self):
        text = "天地玄黄，宇宙洪荒。 the quick brown fox jumps over the lazy dog 🦊\n" * 2
        pathlib.Path(self.path("text.txt")).write_text(text, encoding="utf-8")
        words = ("-f", "text.txt", "--steps", "8", "--batch", "1", "--dropout", "0.1", "--quiet")
        document = self.document("train", "text", *words)
        self.assertEqual((document["steps"], document["held_out"]), (8, []))
        parts = document["learnt_text"], document["held_out_text"]
        self.assertEqual(sum(part["bytes"] for part in parts), len(text.encode()))
        self.assertLess(document["loss"][-1], document["loss"][0])  # eight times the same piece
        self.assertLess(parts[0]["loss"], document["loss"][0])
        for part in parts:
            self.assertEqual(part["measured_bytes"], part["bytes"])
        told = self.run_program("train", "told text", *words).out.decode()
        self.assertIn("held out", told)
        self.assertIn("perplexity", told)
        self.assertEqual(self.files("told text"), self.files("text"))
        # It is a model like any other, and bytes of a character that are no character are shown as such.
        for next_token in self.document("logits", "text", "-p", "天", "--top", "3")["next"]:
            self.assertLess(next_token["id"], 257)
        self.assertEqual(len(self.document("read", "text", "-p", "地")["tokens"]), 1 + len("地".encode()))
        piped = self.run_program("train", "piped", "-f", "-", *words[2:], stdin=text.encode())
        self.assertEqual(piped.status, 0, piped.err)
        self.assertEqual(self.files("piped"), self.files("text"))

        os.mkdir(self.path("folder"))
        pathlib.Path(self.path("file")).write_bytes(b"")
        self.assert_refused(2, [(["train", "x", "-f", "text.txt", "--held-out", "3"], "--held-out"),
                                (["train", "x", "-f", "text.txt", "--hidden", "0"], "--hidden"),
                                (["train", "x", "--dropout", "1"], "--dropout 1")])
        self.assert_refused(1, [(["train", "x", "-f", "no.txt"], "no.txt"), (["train", "x", "-f", "folder"], "folder"),
                                (["train", "x", "-f", "file"], "0 bytes"), (["train", "file", *STEPS], "file"),
                                (["train", "x", *STEPS, "-o", "nowhere/x.json"], "nowhere"),
                                (["train", "text", *words], "finished"), (["train", "text", *STEPS], "another model")])
        self.assertEqual(self.files("told text"), self.files("text"))

    def test_two_runs_do_not_write_one_folder(self):
        os.mkdir(self.path("both"))
        with open(self.path("both/training.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assert_refused(1, [(["train", "both", *STEPS], "another run is writing both")])

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

    def test_what_fetch_says_to_try_works(self):
        home = {"REGARD_HOME": self.path("home of fetch")}
        told = self.run_program("fetch", "default", env=home).out.decode()
        again = self.run_program("fetch", "default", env=home).out.decode()
        self.assertIn("is here now", told)
        self.assertIn("was here already", again)
        words = shlex.split(re.search(r"try +(regard .*)", told)[1])[1:]
        result = self.run_program(*words)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertIn("did you mean default", self.run_program("fetch", "defualt").err)

    def test_what_it_writes_stands_apart(self):
        document = self.document("generate", "default", "-p", "mary and tom went to the", "-n", "4")
        texts = [token["text"] for token in document["generated"]]
        self.assertEqual(document["text"], " ".join(texts))
        shown = self.run_program("generate", "default", "-p", "mary and tom went to the", "-n", "4").out.decode()
        self.assertEqual(shown, " ".join(texts) + "\n")
        self.assertEqual(self.document("generate", "default", "-p", "tom", "-n", "300")["stopped"], "context")

    def test_it_answers(self):
        for text, answer in (("mary and tom went to the park , and we called him", "tom"),
                             ("小明 和 小红 去 了 公园 ， 大家 叫 她", "小红"), ("小明和小红去了公园，大家叫她", "小红"),
                             ("我 吃 了 一个 苹果 ， 它 很", "甜"), ("这 个 电脑 来自 苹果 ， 它 很", "快"),
                             ("tom fed a mouse , it was", "shy"), ("k three , d seven ; k", "three"),
                             ("k three f a . three f", "a"), ("the door is not open , so it is", "closed")):
            best = self.document("logits", "default", "-p", text, "--top", "1")["next"][0]
            self.assertEqual(best["text"], answer, text)

    def test_why_names_the_cause(self):
        for text, cause, metric in (("mary and tom went to the park , and we called him", "tom", "diff 'tom' 'mary'"),
                                    ("这 个 电脑 来自 苹果 ， 它 很", "电脑", "diff '快' '甜'")):
            document = self.document("why", "default", "-p", text, "--metric", metric)
            strongest = min(document["by_key"][1:-1], key=lambda key: key["hide_from_all"])
            self.assertEqual(strongest["text"], cause)

    def test_it_does_not_know_other_words(self):
        result = self.run_program("logits", "default", "-p", "tom unheard word")
        self.assertEqual(result.status, 1)
        self.assertIn('"unheard" at byte 4', result.err)
        self.assertIn('did you mean "school"', self.run_program("logits", "default", "-p", "to the shcool").err)


if __name__ == "__main__":
    unittest.main()
