"""convert as a person meets it: one whole file or none, nothing overwritten by accident."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest


class Convert(ProgramTest):
    def header(self, name):
        with open(self.path(name), "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            return json.loads(file.read(length))

    def test_a_gguf_and_back_to_the_same_bytes(self):
        done = self.document("convert", "tiny.gguf", "one.safetensors")["converted"]
        self.assertEqual(done["bytes"], os.path.getsize(self.path("one.safetensors")))
        header = self.header("one.safetensors")
        self.assertEqual(header.pop("__metadata__"), {"general.architecture": "llama"})
        self.assertEqual((len(header), done["widened"]), (done["tensors"], 0))
        self.assertEqual(header["token_embd.weight"]["shape"], [260, 64])
        self.document("convert", "one.safetensors", "two.safetensors", "--f32")
        with open(self.path("one.safetensors"), "rb") as one, open(self.path("two.safetensors"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        shown = self.run_program("convert", "one.safetensors", "three.safetensors")
        self.assertEqual((shown.status, shown.err), (0, ""))
        self.assertIn("three.safetensors is written", shown.out.decode())

    def test_nothing_is_overwritten_by_accident(self):
        with open(self.path("mine.safetensors"), "w", encoding="ascii") as file:
            file.write("mine")
        self.assert_one_line(self.run_program("convert", "tiny.gguf", "mine.safetensors"), 2, "mine.safetensors", "--force")
        for model in ("truncated.gguf", "noise.gguf", "nowhere.gguf"):
            self.assert_one_line(self.run_program("convert", model, "mine.safetensors", "--force"), 1, model)
        with open(self.path("mine.safetensors"), encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.document("convert", "tiny.gguf", "mine.safetensors", "--force")
        self.document("convert", "mine.safetensors", "mine.safetensors", "--force")  # onto itself
        self.assertIn("token_embd.weight", self.header("mine.safetensors"))

    def test_what_cannot_be_done(self):
        os.makedirs(self.path("pickles"), exist_ok=True)
        with open(self.path("pickles/pytorch_model.bin"), "w", encoding="ascii") as file:
            file.write("PK")
        self.assert_refused(2, [(["convert", "tiny.gguf"], "OUT.safetensors"),
                                (["convert", "tiny.gguf", "x.gguf"], ".safetensors"),
                                (["convert", "tiny.gguf", "a.safetensors", "b"], "unexpected")])
        self.assert_refused(1, [(["convert", "pickles", "x.safetensors"], "pickle"),
                                (["convert", "noise.gguf", "x.safetensors"], "noise.gguf"),
                                (["convert", "tiny.gguf", "nowhere/x.safetensors"], "nowhere"),
                                (["convert", "org/toy", "x.safetensors"], "regard fetch org/toy")])

    def test_interrupted_it_leaves_nothing(self):
        # A large file with a hole in it, so that it takes a while to write out and no time to make.
        size = 3 << 30
        header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
        with open(self.path("large.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + size)
        before = sorted(os.listdir(self.folder))
        with subprocess.Popen([PROGRAM, "convert", "large.safetensors", "out.safetensors"], cwd=self.folder,
                              env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 60
            while sorted(os.listdir(self.folder)) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"interrupted", err)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        os.remove(self.path("large.safetensors"))


if __name__ == "__main__":
    unittest.main()
