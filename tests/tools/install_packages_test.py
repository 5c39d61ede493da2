"""tools/install_packages asks for what is missing and only that; here with stand-ins for dpkg, apt and sudo."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "install_packages"


class InstallPackages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name) / "bin"
        self.bin.mkdir()
        self.calls = pathlib.Path(folder.name) / "calls"
        for tool in ("bash", "env", "mktemp", "tail", "rm"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stand_in("apt-get", f'echo "$DEBIAN_FRONTEND apt-get $*" >>{self.calls}')
        self.stand_in("id", "echo 0")
        self.installed("all")

    def stand_in(self, name, text):
        path = self.bin / name
        path.write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def installed(self, which):
        """dpkg-query knows all packages, or all but the ones named."""
        missing = " ".join(f"[[ $name != {name} ]] || exit 1;" for name in which.split() if name != "all")
        self.stand_in("dpkg-query", f"name=${{@: -1}}; {missing} echo -n installed")

    def run_script(self, *arguments):
        result = subprocess.run([shutil.which("bash"), str(SCRIPT), *arguments], env={"PATH": str(self.bin)},
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        calls = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return result, calls

    def test_nothing_missing_asks_nobody(self):
        result, calls = self.run_script("check")
        self.assertEqual((result.returncode, result.stdout, result.stderr, calls), (0, "", "", []))

    def test_only_what_is_missing_is_installed(self):
        self.installed("ccache libhwy-dev")
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(calls, [
            "noninteractive apt-get update -q",
            "noninteractive apt-get install -q -y --no-install-recommends ccache libhwy-dev"
        ])
        self.assertIn("Installing ccache libhwy-dev", result.stdout)

    def test_building_needs_less_than_checking(self):
        self.installed("clang-format")
        self.assertEqual(self.run_script("build")[1], [])
        self.assertIn("clang-format", self.run_script("check")[1][-1])

    def test_sudo_is_used_where_it_is(self):
        self.installed("ccache")
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", '[[ "$1" == -v ]] || exec "$@"')
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(calls[-1].endswith(" ccache"), calls)

    def test_without_root_it_says_what_to_type(self):
        self.installed("ccache cmake")
        self.stand_in("id", "echo 1000")
        result, calls = self.run_script()
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertIn("apt-get install cmake ccache", result.stderr)

    def test_a_failing_install_is_shown(self):
        self.installed("ccache")
        self.stand_in("apt-get", "echo E: no route; exit 100")
        result, _ = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("E: no route", result.stderr)

    def test_another_system_is_told_what_it_needs(self):
        (self.bin / "dpkg-query").unlink()
        result, _ = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("libhwy-dev", result.stderr)

    def test_an_unknown_set_is_refused(self):
        result, calls = self.run_script("everything")
        self.assertEqual((result.returncode, calls), (2, []))


if __name__ == "__main__":
    unittest.main()
