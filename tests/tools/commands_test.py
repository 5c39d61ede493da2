"""./check, ./demo and .ci/run: they parse, and what they do not know they refuse before doing anything."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


class Commands(unittest.TestCase):
    def test_scripts_parse(self):
        for script in ("check", "demo", ".ci/run", "tools/install_packages"):
            with self.subTest(script):
                result = run("bash", "-n", script)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertTrue((ROOT / script).stat().st_mode & 0o100)

    def test_check_tells_its_options(self):
        result = run("./check", "--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--quick", "--offline"):
            self.assertIn(option, result.stdout)

    def test_unknown_options_are_refused(self):
        for script in ("./check", "./demo"):
            result = run(script, "--fast")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("--fast", result.stderr)


if __name__ == "__main__":
    unittest.main()
