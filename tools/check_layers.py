#!/usr/bin/env python3
"""Checks that the house stands: who may include whom.

    tools/check_layers.py [ROOT]

src/CMakeLists.txt names the folders of src/ in order, each with the folders that it links. The rules:
  - a folder of src/ includes only from folders named before it, and only from those that it links;
  - no file includes itself through others;
  - bench/ includes from src/; apps/ from src/ and bench/; tests/ from all of them; nothing else includes from these;
  - an include of the project's own is written from the top of its tree ("tensor/view.h") and is a file that exists;
    each folder of apps/ is a tree of its own.
Prints each fault as FILE:LINE: what is wrong. Exit status 1 when there is one.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
FOLDER = re.compile(r"^\s*regard_folder\(\s*(\w+)([^)]*)\)", re.MULTILINE)
SUFFIXES = {".h", ".cc"}
# Which trees a tree may include from, its own first: where "a/b.h" is looked up.
SEES = {
    "src": ["src"],
    "bench": ["bench", "src"],
    "apps": ["apps", "bench", "src"],
    "tests": ["tests", "apps", "bench", "src"],
}


def read_order(cmake):
    """[(folder, folders it links, also through others)], in the order of src/CMakeLists.txt, and what is wrong there."""
    order, links, faults = [], {}, []
    for folder, arguments in FOLDER.findall(cmake):
        reached = set()
        for other in re.findall(r"\bregard_(\w+)", arguments):
            if other not in links:
                faults.append(f"src/CMakeLists.txt:1: {folder} links {other}, which is not named before it")
                continue
            reached |= {other} | links[other]
        order.append(folder)
        links[folder] = reached
    return order, links, faults


def includes(path):
    """[(line number, what is included)] of the includes in quotes."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(1)))
    return found


def tree_of(root, path):
    return path.relative_to(root).parts[0]


def tops(root, tree, path=None):
    """The folders from which files of a tree are named, for everybody or for `path`."""
    if tree != "apps":
        return [root / tree]
    if path is not None and tree_of(root, path) == "apps":
        return [root.joinpath(*path.relative_to(root).parts[:2])]
    return sorted(face for face in (root / "apps").glob("*") if face.is_dir())


def resolve(root, path, name):
    """The project's file that `path` means by `name`; None when it is not the project's."""
    for tree in SEES[tree_of(root, path)]:
        for top in tops(root, tree, path):
            if (top / name).is_file():
                return top / name
    return None


def check_one(root, path, number, name, order, links):
    """The fault in one include, or None."""
    tree = tree_of(root, path)
    target = resolve(root, path, name)
    if target is None:
        for other in SEES:
            if any((top / name).is_file() for top in tops(root, other)):
                return f"{tree}/ may not include from {other}/: \"{name}\""
        first = name.split("/")[0]
        if (path.parent / name).is_file():
            return f'"{name}" is not written from the top of its tree'
        if first in order or "/" not in name:
            return f'there is no "{name}"'
        return None  # another library's, in quotes
    if tree != "src" or tree_of(root, target) != "src":
        return None
    folder, other = path.relative_to(root).parts[1], target.relative_to(root).parts[1]
    if folder == other:
        return None
    if order.index(other) > order.index(folder):
        return f'{folder}/ may not include from {other}/, which comes after it: "{name}"'
    if other not in links[folder]:
        return f'{folder}/ includes "{name}" but src/CMakeLists.txt does not link it with {other}'
    return None


def find_cycle(graph):
    """A list of files, each including the next and the last the first; None when there is none."""
    done, trail = set(), []

    def visit(node):
        if node in done:
            return None
        if node in trail:
            return trail[trail.index(node):]
        trail.append(node)
        for following in graph.get(node, []):
            cycle = visit(following)
            if cycle:
                return cycle
        trail.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


def check(root):
    """(faults, number of files looked at)"""
    root = pathlib.Path(root).resolve()
    cmake = root / "src" / "CMakeLists.txt"
    if not cmake.is_file():
        return [f"{cmake}: there is no such file"], 0
    order, links, faults = read_order(cmake.read_text(encoding="utf-8"))
    files = sorted(p for tree in SEES for p in (root / tree).rglob("*") if p.suffix in SUFFIXES and p.is_file())
    graph = {}
    for path in files:
        shown = path.relative_to(root)
        graph[path] = []
        if shown.parts[0] == "src" and (len(shown.parts) < 3 or shown.parts[1] not in order):
            faults.append(f"{shown}:1: its folder is not named in src/CMakeLists.txt")
            continue
        for number, name in includes(path):
            target = resolve(root, path, name)
            fault = check_one(root, path, number, name, order, links)
            if fault:
                faults.append(f"{shown}:{number}: {fault}")
            elif target is not None:
                graph[path].append(target)
    cycle = find_cycle(graph)
    if cycle:
        names = [str(path.relative_to(root)) for path in cycle + cycle[:1]]
        faults.append(f"{names[0]}:1: files include each other: {' -> '.join(names)}")
    return faults, len(files)


def main(arguments):
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    root = arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent
    faults, files = check(root)
    for fault in faults:
        print(fault)
    print(f"layers: {files} files, {len(faults)} faults")
    return 1 if faults or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
