#!/usr/bin/env python3
"""Checks that what the pages say is so.

    tools/check_docs.py [ROOT]                  what they point at is there: links, pictures, headings, `src/...` paths, and
                                                tests by their names (`Suite.Case` or `Suite.*`)
    tools/check_docs.py --run PROGRAM [ROOT]    and their examples do what is shown, run with that regard

Pages are README.md and docs/*.md. In a ```console block a line "$ regard ..." is a command; the lines up to the next "$"
or the end of the block are its output, to the letter. A line of output that is only "..." stands for any lines; a command
without output only has to succeed. What a command writes with -o must equal the file of that name when the repository has
one. Other commands ("$ ./demo") are not run. Prints each fault as FILE:LINE: what is wrong. Exit status 1 when there is one.
"""

import difflib
import filecmp
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
SPAN = re.compile(r"`([^`]+)`")
PATH = re.compile(r"^(?:\./)?(?:src|apps|bench|tests|docs|tools|cmake|python|web|\.ci)/[\w./*-]*$")
TEST = re.compile(r"^([A-Z]\w+)\.([A-Z]\w+|\*)$")
DEFINED = re.compile(r"^\s*TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
FENCE = re.compile(r"^\s*```(\w*)\s*$")


def pages_of(root):
    return [root / "README.md"] + sorted((root / "docs").glob("*.md"))


def lines_of(page):
    """[(line number, text, language of the code block it is in or None)], without the fences."""
    language, found = None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence:
            language = (fence.group(1) or "text") if language is None else None
            continue
        found.append((number, line, language))
    return found


def anchors_of(page):
    """The names under which a page's headings can be linked to."""
    anchors = set()
    for _, line, language in lines_of(page):
        if language is None and line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            anchors.add(words.replace(" ", "-"))
    return anchors


def link_fault(root, page, target):
    if re.match(r"^[a-z]+:", target):
        return None  # another site's
    name, _, anchor = target.partition("#")
    file = page if not name else page.parent / name
    if not file.exists():
        return f"links to {name}, which is not there"
    if root not in file.resolve().parents and file.resolve() != root:
        return f"links to {name}, which is outside the repository"
    if anchor and file.suffix == ".md" and anchor not in anchors_of(file):
        return f"links to {target}, but {file.name} has no such heading"
    return None


def path_fault(root, span):
    if not PATH.match(span) or any(root.glob(span.removeprefix("./").rstrip("/"))):
        return None
    return f"names {span}, which is not there"


def tests_of(root):
    """All "Suite.Case" and "Suite.*" there are."""
    names = set()
    for file in (root / "tests").rglob("*_test.cc"):
        for suite, case in DEFINED.findall(file.read_text(encoding="utf-8")):
            names |= {f"{suite}.{case}", f"{suite}.*"}
    return names


def pointing_faults(root):
    faults, tests = [], tests_of(root)
    for page in pages_of(root):
        for number, line, language in lines_of(page):
            if language is not None:
                continue
            found = [link_fault(root, page, target) for target in LINK.findall(line)]
            found += [path_fault(root, span) for span in SPAN.findall(line)]
            found += [f"names the test {span}, which is not there" for span in SPAN.findall(line)
                      if TEST.match(span) and span not in tests]
            faults += [f"{page.relative_to(root)}:{number}: {fault}" for fault in found if fault]
    return faults


def examples_of(page):
    """[(line number, command, [lines of output])] of the console blocks."""
    examples, block_end = [], -1
    for number, line, language in lines_of(page):
        if language != "console":
            continue
        if line.startswith("$ "):
            examples.append((number, line[2:], []))
        elif examples and number == block_end + 1:
            examples[-1][2].append(line)
        block_end = number
    return examples


def matches(shown, printed):
    """Whether the printed lines are the shown ones, where "..." stands for any lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0].rstrip() == printed[0].rstrip() and matches(shown[1:], printed[1:])


def plain_environment():
    """Ours, without what a person may have set about colours, and 80 columns wide."""
    hidden = ("CLICOLOR_FORCE", "NO_COLOR", "COLORTERM", "REGARD_TARGET")
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"COLUMNS": "80"}


def example_fault(root, program, command, shown):
    words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        written = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "-o"]
        for name in written:
            (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
        result = subprocess.run([program] + words[1:], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                                env=plain_environment(), timeout=300, check=False)
        if result.returncode != 0:
            return f"fails: {result.stderr.decode(errors='replace').strip() or result.returncode}"
        for name in written:
            if (root / name).is_file() and not filecmp.cmp(root / name, pathlib.Path(folder) / name, shallow=False):
                return f"writes another {name} than the one here"
    printed = result.stdout.decode(errors="replace").splitlines()
    while shown and not shown[-1].strip():
        shown = shown[:-1]
    while printed and not printed[-1].strip():
        printed = printed[:-1]
    if shown and not matches(shown, printed):
        changes = difflib.unified_diff(shown, printed, "shown", "printed", lineterm="", n=1)
        return "prints something else:\n" + "\n".join(changes)
    return None


def example_faults(root, program):
    """(faults, number of examples run)"""
    faults, count = [], 0
    for page in pages_of(root):
        for number, command, shown in examples_of(page):
            if not re.match(r"^(?:build/release/)?regard ", command):
                continue
            count += 1
            fault = example_fault(root, program, command, shown)
            if fault:
                faults.append(f"{page.relative_to(root)}:{number}: {command}\n  {fault}")
    return faults, count


def main(arguments):
    program = None
    if arguments[:1] == ["--run"] and len(arguments) > 1:
        program, arguments = str(pathlib.Path(arguments[1]).resolve()), arguments[2:]
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    faults = pointing_faults(root)
    said = f"docs: {len(pages_of(root))} pages"
    if program:
        more, count = example_faults(root, program)
        faults += more
        said += f", {count} examples run"
    for fault in faults:
        print(fault)
    print(f"{said}, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
