"""Runs the program in a folder of its own, with small random models in it."""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

PROGRAM = os.environ["REGARD_PROGRAM"]
MAKER = os.environ["REGARD_MODEL_MAKER"]


def rounding(numbers):
    """How far the sum of so many shares of 1 may be from 1: each is f32, rounded in its last step and in its sum's."""
    return numbers * 2.0**-23


def arrays(path):
    """name -> (type, shape, bytes) of a .npz file."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            assert data[:8] == b"\x93NUMPY\x01\x00"
            length = struct.unpack("<H", data[8:10])[0]
            header = eval(data[10:10 + length].decode())  # a Python dictionary, by the format's definition
            found[name.removesuffix(".npy")] = (header["descr"], list(header["shape"]), data[10 + length:])
    return found


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr.decode()


class ProgramTest(unittest.TestCase):
    """Each class of tests gets a folder with models; `run_program` runs there with a quiet environment."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="regard-cli-")
        subprocess.run([MAKER, cls.folder], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def environment(cls, **more):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "OMP_WAIT_POLICY")}
        return {**kept, "REGARD_HOME": os.path.join(cls.folder, "home"),
                "HF_HOME": os.path.join(cls.folder, "hub-home"), "LC_ALL": "C.UTF-8", **more}

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def run_program(self, *words, stdin=b"", env=None, stdout=subprocess.PIPE):
        process = subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.environment(**(env or {})), input=stdin,
                                 stdout=stdout, stderr=subprocess.PIPE, timeout=300, check=False)
        return Result(process)

    def document(self, *words, **more):
        """The one JSON document on standard output; nothing else may be there."""
        result = self.run_program(*words, "--json", **more)
        self.assertEqual((result.status, result.err), (0, ""), words)
        return self.strict(result.out)

    def last_target(self):
        """The slowest instruction set of this build: another one than is in force, where there are several."""
        return self.document("info", "tiny.gguf")["targets"][-1]

    def strict(self, data):
        def refuse(constant):
            raise AssertionError(constant + " is not JSON")
        return json.loads(data.decode("utf-8", "strict"), parse_constant=refuse)

    def assert_one_line(self, result, status, *parts):
        self.assertEqual(result.status, status, result.err)
        self.assertEqual(result.out or b"", b"")
        self.assertRegex(result.err, r"\Aregard: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, result.err)

    def assert_refused(self, status, cases):
        """Each (words, part of the line) is refused so, and no file is left behind."""
        before = sorted(os.listdir(self.folder))
        for words, part in cases:
            with self.subTest(words=words):
                self.assert_one_line(self.run_program(*words), status, part)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "something was left behind")
