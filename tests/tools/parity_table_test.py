"""tools/parity_table: a row per family, the worst kind of site named; and docs/parity.md has every family."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = """\
b\tf32\tz\t66\t1e-06\t1e-06\t1
b\tf32\tlogits\t66\t3e-06\t2e-06\t1.5
a\tbf16\tz\t66\t0\t1e-06\t0
"""


ONE_RUN = {"a": {"z": 1e-6}, "b": {"z": 4e-7, "logits": 2e-6}}


def table(text):
    with tempfile.TemporaryDirectory() as folder:
        lines, one_run = pathlib.Path(folder) / "parity.tsv", pathlib.Path(folder) / "one_run.json"
        lines.write_text(text)
        one_run.write_text(json.dumps(ONE_RUN))
        return subprocess.run([sys.executable, ROOT / "tools/parity_table", lines, one_run], capture_output=True,
                              text=True, check=False)


class ParityTable(unittest.TestCase):
    def test_rows(self):
        done = table(LINES)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if re.match(r"\| [ab] ", line)]
        self.assertEqual(rows, ["| a | bf16 | 66 | 1 |  |  | 0.00 | `z` | 0.0e+00 | 1.0e-06 | 0.00 | `z` |",
                                "| b | f32 | 66 | 2 | 3.0e-06 | 2.0e-06 | 1.50 | `logits` | 3.0e-06 | 2.0e-06 | 2.50 | `z` |"])
        self.assertIn("one run: b `z` 2.50.", done.stdout)

    def test_what_it_refuses(self):
        self.assertNotEqual(table("").returncode, 0)
        self.assertIn("line 1", table("a\tb\n").stderr)

    def test_the_page_has_every_family_and_none_is_beyond_two(self):
        rows = re.findall(r"^\| ([a-z0-9_]+) \|(?:[^|]*\|){5} ([0-9.]+) \|", (ROOT / "docs/parity.md").read_text(), re.M)
        folders = {path.parent.name for path in ROOT.glob("tests/data/families/*/config.json")}
        self.assertEqual({family for family, _ in rows}, folders)
        for family, ratio in rows:
            self.assertLessEqual(float(ratio), 2, family)


if __name__ == "__main__":
    unittest.main()
