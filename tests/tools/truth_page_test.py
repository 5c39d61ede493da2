"""docs/truth.md is what the program writes: every number of it, and every word."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("REGARD_PROGRAM", "")
if not os.path.isfile(PROGRAM):
    print("skipped: this needs the program")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder, "truth.md")
    subprocess.run([PROGRAM, "bench", "truth", "--quiet", "-o", str(made)], check=True,
                   env={**os.environ, "REGARD_HOME": folder})
    if made.read_bytes() != (ROOT / "docs" / "truth.md").read_bytes():
        print("docs/truth.md is not what regard writes; make it again: regard bench truth -o docs/truth.md")
        sys.exit(1)
