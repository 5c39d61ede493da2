"""docs/truth.md is what the program writes, every number of it and every word; and models/README.md says what it and the
page of the model that never missed a word say."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8")
         for name in ("docs/truth.md", "docs/truth-never-hidden.md", "models/README.md")}


def found(page):
    return re.search(r"`why` .* names the cause or its carrier in .* \((.*)\)\.", PAGES[page])[1]


said = f"carrier in {found('docs/truth-never-hidden.md')} of sentences instead of {found('docs/truth.md')}"
if said not in " ".join(PAGES["models/README.md"].split()):
    print(f"models/README.md does not say: {said}")
    sys.exit(1)

PROGRAM = os.environ.get("REGARD_PROGRAM", "")
if not os.path.isfile(PROGRAM):
    print("skipped: this needs the program")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder, "truth.md")
    subprocess.run([PROGRAM, "bench", "truth", "--quiet", "--threads", "1", "-o", str(made)], check=True,
                   env={**os.environ, "REGARD_HOME": folder})
    if made.read_bytes() != (ROOT / "docs" / "truth.md").read_bytes():
        print("docs/truth.md is not what regard writes; make it again: regard bench truth -o docs/truth.md")
        sys.exit(1)
