"""The pages of this repository hold: what they point at is there, and their examples print what is shown.

The examples read real weights: without REGARD_TEST_MODELS they are skipped (exit status 77).
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

if check_docs.main([str(ROOT)]) != 0:
    sys.exit(1)
if not os.environ.get("REGARD_TEST_MODELS") or not os.path.isfile(os.environ.get("REGARD_PROGRAM", "")):
    print("skipped: the examples need the program and its models (./check fetches them)")
    sys.exit(77)
sys.exit(check_docs.main(["--run", os.environ["REGARD_PROGRAM"], str(ROOT)]))
