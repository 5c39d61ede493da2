"""regard train: the same folder however often it was stopped."""

import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

from program import PROGRAM, ProgramTest

FILES = ("config.json", "model.safetensors", "tokenizer.json", "loss.svg")
STEPS = ("--steps", "9", "--sentences", "10", "--save-every", "1", "--held-out", "4", "--quiet")


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
        page = (pathlib.Path(__file__).resolve().parents[2] / "models" / "README.md").read_text(encoding="utf-8")
        self.assertIn(f"{round(document['parameters'], -4):,} numbers", page)
        usage = self.run_program("train", "--help").out.decode()
        steps, sentences = (re.search(rf"{option} .*?\(default (\d+)\)", usage, re.S)[1] for option in ("--steps", "--sentences"))
        self.assertIn(f"{int(steps):,} steps of AdamW on {sentences} sentences each", page)

        table = self.document("bench", "truth", "whole", "--count", "1")
        self.assertEqual(len(table["methods"]), 13)
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

    def test_another_recipe_does_not_go_on(self):
        os.mkdir(self.path("other"))
        pathlib.Path(self.path("other"), "training.state").write_bytes(b"not a state")
        result = self.run_program("train", "other", *STEPS)
        self.assertEqual(result.status, 1)
        self.assertIn("training.state", result.err)
        result = self.run_program("train")
        self.assertEqual(result.status, 2)
        self.assertIn("regard train DIR", result.err)


if __name__ == "__main__":
    unittest.main()
