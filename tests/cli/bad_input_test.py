"""What goes wrong gives one line that says what, where and what to do; the right exit status; and nothing half-written."""

import os
import subprocess
import unittest

from program import PROGRAM, ProgramTest

BAD_INPUT, USAGE = 1, 2


class Usage(ProgramTest):
    CASES = [
        (["reed", "tiny.gguf", "-p", "x"], "did you mean read?"),
        (["xyzzy"], "regard --help"),
        (["read"], "no model"),
        (["read", "tiny.gguf"], "-p TEXT"),
        (["logits", "tiny.gguf"], "-p TEXT"),
        (["tokens", "tiny.gguf", "-p", "a", "-f", "b"], "one of -p, -f and --ids"),
        (["tokens", "tiny.gguf", "-p", "a", "--ids", "1"], "one of -p, -f and --ids"),
        (["tokens", "tiny.gguf", "-p"], "-p"),
        (["tokens", "tiny.gguf", "-p", "a", "-p", "b"], "--prompt"),
        (["tokens", "tiny.gguf", "some", "words"], '"some"'),
        (["tokens", "tiny.gguf", "-p", "a", "--jsn"], "did you mean --json?"),
        (["tokens", "tiny.gguf", "-p", "a", "--zzzzzzzz=3"], "--zzzzzzzz"),
        (["tokens", "tiny.gguf", "-p", "a", "--threads", "0"], "--threads"),
        (["tokens", "tiny.gguf", "-p", "a", "--threads", "-1"], "--threads"),
        (["tokens", "tiny.gguf", "-p", "a", "--threads", "2x"], "--threads"),
        (["tokens", "tiny.gguf", "-p", "a", "--threads", ""], "--threads"),
        (["tokens", "tiny.gguf", "-p", "a", "--threads", "99999999999999999999"], "--threads"),
        (["tokens", "tiny.gguf", "-p", "a", "--target", "AVX9"], "AVX9"),
        (["tokens", "tiny.gguf", "--ids", "1,,2"], "--ids"),
        (["tokens", "tiny.gguf", "--ids", "1,2,"], "--ids"),
        (["tokens", "tiny.gguf", "--ids", "1.5"], "--ids"),
        (["tokens", "tiny.gguf", "--ids", "one"], "--ids"),
        (["tokens", "tiny.gguf", "--ids", "99999999999"], "--ids"),
        (["logits", "tiny.gguf", "-p", "a", "--top", "-3"], "--top"),
        (["logits", "tiny.gguf", "-p", "a", "--top", "0"], "--top"),
        (["logits", "tiny.gguf", "-p", "a", "--top", "abc"], "--top"),
        (["generate", "tiny.gguf", "-p", "a", "-n", "-1"], "--tokens"),
        (["generate", "tiny.gguf", "-p", "a", "--temperature", "-0.5"], "--temperature"),
        (["generate", "tiny.gguf", "-p", "a", "--temperature", "nan"], "--temperature"),
        (["generate", "tiny.gguf", "-p", "a", "--temperature", "inf"], "--temperature"),
        (["generate", "tiny.gguf", "-p", "a", "--top-p", "1.5"], "--top-p"),
        (["generate", "tiny.gguf", "-p", "a", "--seed", "x"], "--seed"),
        (["generate", "chat.gguf", "--ids", "1", "--chat"], "--chat"),
        (["generate", "tiny.gguf", "-p", "a", "--system", "x"], "--chat"),
        (["tokens", "tiny.gguf", "-p", "a", "-o", "out"], "-o out"),
        (["tokens", "tiny.gguf", "-p", "a", "-o", "out.xls"], ".json"),
        (["tokens", "tiny.gguf", "-p", "a", "-o", "out.npz"], ".json"),
        (["bench", "--only", "nothing is called this"], "nothing is called this"),
        (["bench", "truth", "tiny.gguf", "--count", "0"], "--count"),
        (["info"], "no model"),
        (["fetch"], "no model"),
    ]

    def test_each(self):
        for words, part in self.CASES:
            with self.subTest(words=words):
                self.assert_one_line(self.run_program(*words), USAGE, part)

    def test_a_target_of_the_environment_is_checked_too(self):
        result = self.run_program("logits", "tiny.gguf", "-p", "a", env={"REGARD_TARGET": "AVX9"})
        self.assert_one_line(result, USAGE, "AVX9", "best")

    def test_nothing_typed_gives_the_help_and_says_usage(self):
        result = self.run_program()
        self.assertEqual(result.status, USAGE)
        self.assertIn(b"regard VERB MODEL", result.out)

    def test_help_is_no_error(self):
        for words in [["--help"], ["help"], ["--version"]] + [[v, "--help"] for v in ("models", "fetch", "info", "tokens",
                                                                                      "logits", "generate", "read", "why",
                                                                                      "patch", "sweep", "bench")]:
            result = self.run_program(*words)
            self.assertEqual((result.status, result.err), (0, ""), words)
            self.assertTrue(result.out)


class BadInput(ProgramTest):
    CASES = [
        (["tokens", "tiny.gguf", "-p", b"caf\xe9"], "byte 3 is 0xE9"),
        (["tokens", "tiny.gguf", "-f", "latin1.txt"], "latin1.txt"),
        (["tokens", "tiny.gguf", "-f", "missing.txt"], "missing.txt"),
        (["tokens", "tiny.gguf", "-f", "."], "directory"),
        (["logits", "tiny.gguf", "-p", ""], "empty"),
        (["generate", "tiny.gguf", "-p", ""], "empty"),
        (["read", "tiny.gguf", "-p", ""], "empty"),
        (["logits", "tiny.gguf", "--ids", ""], "empty"),
        (["logits", "tiny.gguf", "-p", "a" * 257], "257 tokens"),
        (["read", "tiny.gguf", "-p", "a" * 257], "context is 256"),
        (["generate", "tiny.gguf", "-p", "a" * 257], "context is 256"),
        (["tokens", "tiny.gguf", "--ids", "0,260"], "260"),
        (["logits", "tiny.gguf", "--ids", "-1"], "-1"),
        (["read", "tiny.gguf", "--ids", "1,260"], "from 0 to 259"),
        (["tokens", "nowhere.gguf", "-p", "a"], "nowhere.gguf"),
        (["tokens", "smollm3", "-p", "a"], "smollm3"),
        (["tokens", "smollm2", "-p", "a"], "regard fetch smollm2"),
        (["fetch", "smolm2"], "smollm2"),
        (["info", "."], ""),
        (["info", "truncated.gguf"], "truncated.gguf"),
        (["read", "truncated.gguf", "-p", "a"], "truncated.gguf"),
        (["tokens", "header.gguf", "-p", "a"], "header.gguf"),
        (["info", "noise.gguf"], "noise.gguf"),
        (["info", "empty.gguf"], "empty.gguf"),
        (["info", "unknown.gguf"], "unheard-of"),
        (["read", "unknown.gguf", "-p", "a"], "unheard-of"),
        (["generate", "tiny.gguf", "-p", "a", "--chat"], "no chat template"),
        (["generate", "other-chat.gguf", "-p", "a", "--chat"], "cannot be used: no"),
        (["tokens", "tiny.gguf", "-p", "a", "-o", "no/such/folder/out.json"], "no/such/folder/out.json"),
        (["tokens", "tiny.gguf", "-p", "a", "-o", "full.json"], "No space left"),
        (["logits", "tiny.gguf", "-p", "a", "-o", "full.npz"], "regular file"),
        (["info", "two\nlines.gguf"], "two\\nlines.gguf"),
    ]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.path("latin1.txt"), "wb") as file:
            file.write(b"caf\xe9")
        os.symlink("/dev/full", cls.path("full.json"))
        os.symlink("/dev/full", cls.path("full.npz"))

    def test_each(self):
        before = sorted(os.listdir(self.folder))
        for words, part in self.CASES:
            with self.subTest(words=words):
                self.assert_one_line(self.run_program(*words), BAD_INPUT, part)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "something was left behind")

    def test_standard_output_is_full(self):
        for words in (["tokens", "tiny.gguf", "-p", "a"], ["tokens", "tiny.gguf", "-p", "a", "--json"],
                      ["logits", "tiny.gguf", "-p", "a"], ["generate", "tiny.gguf", "-p", "a"], ["models"], ["--help"],
                      ["tokens", "--help"], ["--version"]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                result = self.run_program(*words, stdout=full)
                self.assert_one_line(result, BAD_INPUT, "standard output")

    def test_standard_output_is_closed(self):
        process = subprocess.run(["sh", "-c", '"$0" tokens tiny.gguf -p a >&-', PROGRAM], cwd=self.folder,
                                 env=self.environment(), stderr=subprocess.PIPE, check=False)
        self.assertEqual(process.returncode, BAD_INPUT)
        self.assertRegex(process.stderr.decode(), r"\Aregard: cannot write standard output[^\n]*\n\Z")

    def test_standard_input_is_closed(self):
        process = subprocess.run(["sh", "-c", '"$0" tokens tiny.gguf -f - <&-', PROGRAM], cwd=self.folder,
                                 env=self.environment(), capture_output=True, check=False)
        self.assertEqual((process.returncode, process.stdout), (BAD_INPUT, b""))
        self.assertRegex(process.stderr.decode(), r"\Aregard: cannot read standard input[^\n]*\n\Z")

    def test_a_read_only_file_is_not_replaced(self):
        if os.geteuid() == 0:
            self.skipTest("the superuser may write anywhere")
        with open(self.path("kept.json"), "w", encoding="utf-8") as file:
            file.write("old")
        os.chmod(self.path("kept.json"), 0o444)
        self.assert_one_line(self.run_program("tokens", "tiny.gguf", "-p", "a", "-o", "kept.json"), BAD_INPUT, "kept.json")


if __name__ == "__main__":
    unittest.main()
