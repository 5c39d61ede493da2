"""./check, ./demo and .ci/run: they parse, what they do not know they refuse before doing anything, and ./demo has a
model whether or not it can fetch one."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


class Commands(unittest.TestCase):
    def test_scripts_parse(self):
        for script in ("check", "demo", ".ci/run", "tools/install_packages", "tools/emulate"):
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

    def test_demo_reads_the_model_inside_the_program_where_none_can_be_fetched(self):
        for fetches in (True, False):
            with self.subTest(fetches=fetches), tempfile.TemporaryDirectory() as folder:
                # A program that says what it was asked, and builds and packages that are there already.
                scripts = {"tools/install_packages": "exit 0", "bin/cmake": "exit 0", "build/release/build.ninja": "",
                           "build/release/regard": f'[ "$1" != fetch ] || exit {0 if fetches else 1}; echo "asked: $*"'}
                for name, text in scripts.items():
                    path = pathlib.Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
                    path.chmod(0o755)
                shutil.copy(ROOT / "demo", folder)
                result = subprocess.run(["./demo"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                        env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}, timeout=60,
                                        check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"asked: read {'smollm2' if fetches else 'default'} -p", result.stdout)
                self.assertEqual("could not be fetched" in result.stdout, not fetches)


if __name__ == "__main__":
    unittest.main()
