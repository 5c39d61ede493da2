"""tools/count_tests.py counts what happened: above all, nothing that failed or was skipped as passed."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import count_tests  # noqa: E402

# What ctest 3.25 writes for each way a test can go.
ENTRIES = {
    "passed": '<testcase name="{name}" status="run"><system-out></system-out></testcase>',
    "failed": '<testcase name="{name}" status="fail"><failure message=""/></testcase>',
    "skipped": '<testcase name="{name}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>',
    "lost": '<testcase name="{name}" status="notrun"><skipped message="Unable to find executable"/></testcase>',
    "disabled": '<testcase name="{name}" status="disabled"><system-out>Disabled</system-out></testcase>',
}
# What GoogleTest 1.12 writes for each way a case can go.
PASSED = {"name": "passes", "status": "RUN", "result": "COMPLETED"}
FAILED = {"name": "fails", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "no"}]}
SKIPPED = {"name": "skips", "status": "RUN", "result": "SKIPPED"}
DISABLED = {"name": "DISABLED_sleeps", "status": "NOTRUN", "result": "SUPPRESSED"}


def run(binaries, cases):
    """(last line, exit status) for binaries {name: how it went} and cases {binary: [case]}"""
    with tempfile.TemporaryDirectory() as folder:
        junit = pathlib.Path(folder) / "junit.xml"
        entries = "".join(ENTRIES[went].format(name=name) for name, went in binaries.items())
        junit.write_text(f'<?xml version="1.0"?><testsuite name="(empty)">{entries}</testsuite>', encoding="utf-8")
        for name, list_of_cases in cases.items():
            text = json.dumps({"testsuites": [{"name": "Suite", "testsuite": list_of_cases}]})
            (pathlib.Path(folder) / f"{name}.json").write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = count_tests.main([str(junit), folder])
        return printed.getvalue().splitlines()[-1], status


class CountTests(unittest.TestCase):
    def test_cases_are_added_up(self):
        self.assertEqual(run({"a": "passed", "b": "passed"}, {"a": [PASSED, PASSED], "b": [PASSED]}),
                         ("3 passed, 0 failed, 0 skipped", 0))

    def test_a_skipped_case_of_a_passing_binary_is_skipped(self):
        self.assertEqual(run({"a": "passed"}, {"a": [PASSED, SKIPPED]}), ("1 passed, 0 failed, 1 skipped", 0))

    def test_a_disabled_case_is_skipped(self):
        self.assertEqual(run({"a": "passed", "b": "disabled"}, {"a": [PASSED, DISABLED]}),
                         ("1 passed, 0 failed, 2 skipped", 0))

    def test_failed_cases_fail(self):
        self.assertEqual(run({"a": "failed"}, {"a": [PASSED, FAILED, FAILED]}), ("1 passed, 2 failed, 0 skipped", 1))

    def test_a_binary_that_dies_after_its_cases_fails(self):
        self.assertEqual(run({"a": "failed"}, {"a": [PASSED]}), ("1 passed, 1 failed, 0 skipped", 1))

    def test_a_binary_that_says_nothing_counts_as_one(self):
        self.assertEqual(run({"a": "failed", "b": "passed", "c": "skipped", "d": "lost"}, {}),
                         ("1 passed, 2 failed, 1 skipped", 1))

    def test_a_result_that_breaks_off_counts_as_one(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.json").write_text('{"testsuites": [', encoding="utf-8")
            self.assertEqual(count_tests.cases_of(pathlib.Path(folder) / "a.json"), [])

    def test_cases_of_scripts_are_added_up(self):
        ran = "....\n------\nRan {} tests in 0.1s\n\n{}\n"
        for text, counts in [(ran.format(4, "OK"), (4, 0, 0)), (ran.format(4, "OK (skipped=3)"), (1, 0, 3)),
                             (ran.format(9, "FAILED (failures=1, errors=2, skipped=1)"), (5, 3, 1)),
                             (ran.format(2, "FAILED (unexpected successes=1)"), (1, 1, 0)),
                             ("Ran 1 test in 0.1s\n\nOK\n", (1, 0, 0)), ("hello", (0, 0, 0)),
                             ("Ran 3 tests in 0.1s\n\nOK\nand then it died", (0, 0, 0))]:
            with self.subTest(text):
                went = [how for _, how in count_tests.cases_of_script(text)]
                self.assertEqual(tuple(went.count(how) for how in ("passed", "failed", "skipped")), counts)

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(run({}, {}), ("0 passed, 0 failed, 0 skipped", 1))


if __name__ == "__main__":
    unittest.main()
