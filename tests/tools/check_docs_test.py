"""tools/check_docs.py finds what a page promises and does not hold."""

import pathlib
import stat
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

# Stands in for regard: prints its arguments, one a line; writes them to the file after -o; fails when told to.
PROGRAM = """#!/usr/bin/env python3
import sys
words = sys.argv[1:]
if "-o" in words:
    open(words[words.index("-o") + 1], "w").write(" ".join(words))
print("\\n".join(words))
sys.exit("told to fail" if "fail" in words else 0)
"""


def block(text):
    return f"# Title\n```console\n{text}\n```\n"


class CheckDocs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve()
        for name in ("docs", "src/tensor"):
            (self.root / name).mkdir(parents=True)
        (self.root / "docs" / "more.md").write_text("# More of it\n## The `order`, briefly\n", encoding="utf-8")
        (self.root / "src" / "tensor" / "view.h").write_text("", encoding="utf-8")
        (self.root / "tests").mkdir()
        (self.root / "tests" / "view_test.cc").write_text("TEST(View, Holds) {}\nTEST_F(Wide, Fits) {}\n", encoding="utf-8")
        self.program = self.root / "program"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def pointing(self, text):
        (self.root / "README.md").write_text(text, encoding="utf-8")
        return check_docs.pointing_faults(self.root)

    def examples(self, text):
        (self.root / "README.md").write_text(text, encoding="utf-8")
        return check_docs.example_faults(self.root, str(self.program))

    def test_what_is_there_may_be_pointed_at(self):
        self.assertEqual(
            self.pointing("[a](docs/more.md) [b](docs/more.md#more-of-it) [c](https://example.org/x) [d](#e) \n# e\n"
                          "[f](docs/more.md#the-order-briefly) `src/tensor/view.h` `src/tensor/` `src/*/view.h` "
                          "`./src/tensor` `src/<folder>/x.cc` `not/ours.cc` `View.Holds` `Wide.Fits` `Wide.*` "
                          "`kernels.h`\n```\n`src/gone.h`\n```\n"), [])

    def test_what_is_not_there_is_named(self):
        for text, part in [("[a](docs/gone.md)", "docs/gone.md"), ("![a](docs/gone.png)", "docs/gone.png"),
                           ("[a](docs/more.md#less)", "no such heading"), ("[a](#nowhere)", "no such heading"),
                           ("[a](../outside)", "not there"), ("[a](..)", "outside"), ("`src/tensor/gone.h`", "gone.h"),
                           ("`src/gone/*.h`", "src/gone"), ("`View.Breaks`", "View.Breaks"),
                           ("`Narrow.*`", "Narrow")]:
            with self.subTest(text):
                faults = self.pointing("\n" + text)
                self.assertEqual(len(faults), 1, faults)
                self.assertIn("README.md:2: ", faults[0])
                self.assertIn(part, faults[0])

    def test_examples_that_hold(self):
        faults, count = self.examples(
            block("$ regard one 'a b'\none\na b\n$ regard x\n\n$ build/release/regard 1 2 3 4\n1\n...\n4\n$ ./demo\nhm") +
            block("$ regard -o docs/new.svg") + block("$ regard a\n...\na\n..."))
        self.assertEqual((faults, count), ([], 5))

    def test_an_example_that_prints_something_else(self):
        for shown in ("one", "one\ntwo\nthree", "One\ntwo", "...\none", "two\none"):
            with self.subTest(shown):
                faults, _ = self.examples(block(f"$ regard one two\n{shown}"))
                self.assertEqual(len(faults), 1)
                self.assertIn("README.md:3: regard one two", faults[0])

    def test_an_example_that_fails(self):
        faults, _ = self.examples(block("$ regard fail"))
        self.assertEqual(len(faults), 1)
        self.assertIn("told to fail", faults[0])

    def test_a_written_file_equals_the_one_here(self):
        picture = self.root / "docs" / "read.svg"
        picture.write_text("read -o docs/read.svg", encoding="utf-8")
        self.assertEqual(self.examples(block("$ regard read -o docs/read.svg")), ([], 1))
        picture.write_text("an older one", encoding="utf-8")
        faults, _ = self.examples(block("$ regard read -o docs/read.svg"))
        self.assertEqual(len(faults), 1)
        self.assertIn("another docs/read.svg", faults[0])


if __name__ == "__main__":
    unittest.main()
