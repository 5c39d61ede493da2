#!/usr/bin/env python3
"""Adds up what a run of ctest did, case by case.

    tools/count_tests.py JUNIT_XML CASES_FOLDER

JUNIT_XML is what `ctest --output-junit` wrote: one entry for each test binary or script. CASES_FOLDER holds what the
binaries wrote about their cases (GTEST_OUTPUT=json:CASES_FOLDER/); scripts end with what Python's unittest says. Prints each failed and each skipped case, then

    N passed, N failed, N skipped

A binary that failed without a failed case (a crash, a sanitizer's finding at exit, a timeout) is one failure more, and so
is one of which no result is there. Exit status 1 when something failed or nothing was run.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def cases_of(file):
    """[(name, how it went)] of a GoogleTest result; none when the file is missing or broken off."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    cases = []
    for suite in document.get("testsuites", []):
        for case in suite.get("testsuite", []):
            left_out = case.get("status") != "RUN" or case.get("result") == "SKIPPED"
            went = FAILED if case.get("failures") else SKIPPED if left_out else PASSED
            cases.append((f"{suite['name']}.{case['name']}", went))
    return cases


def cases_of_script(output):
    """The same of what a script printed, if it closes with unittest's "Ran 3 tests ... OK (skipped=1)"."""
    ran = re.search(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?\s*\Z", output, re.MULTILINE)
    if ran is None:
        return []
    how = {key: int(value) for key, value in re.findall(r"(\w[\w ]*)=(\d+)", ran.group(3) or "")}
    skipped = how.get("skipped", 0)
    failed = how.get("failures", 0) + how.get("errors", 0) + how.get("unexpected successes", 0)
    passed = max(0, int(ran.group(1)) - skipped - failed)
    return [("a case", PASSED)] * passed + [("a case", FAILED)] * failed + [("a case", SKIPPED)] * skipped


def binaries_of(junit):
    """[(name, how it went, what it printed)] of the tests that ctest ran."""
    binaries = []
    for entry in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        # ctest says run, fail, disabled, or notrun: of a test that skipped itself and of one that it could not start.
        status, skipped = entry.get("status"), entry.find("skipped")
        skipped_itself = status == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_")
        went = PASSED if status == "run" else SKIPPED if skipped_itself or status == "disabled" else FAILED
        binaries.append((entry.get("name"), went, entry.findtext("system-out") or ""))
    return binaries


def count(junit, cases_folder):
    """{passed, failed, skipped: [names]}"""
    result = {PASSED: [], FAILED: [], SKIPPED: []}
    for binary, went, output in binaries_of(junit):
        cases = cases_of(pathlib.Path(cases_folder) / f"{binary}.json") or cases_of_script(output)
        for case, case_went in cases:
            result[case_went].append(f"{binary}: {case}")
        if went == FAILED and not any(case_went == FAILED for _, case_went in cases):
            result[FAILED].append(f"{binary}: did not end well")
        elif not cases:
            result[went].append(binary)
    return result


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    result = count(*arguments)
    for went in (SKIPPED, FAILED):
        for name in result[went]:
            print(f"{went}: {name}")
    print(", ".join(f"{len(result[went])} {went}" for went in (PASSED, FAILED, SKIPPED)))
    return 1 if result[FAILED] or not (result[PASSED] or result[SKIPPED]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
