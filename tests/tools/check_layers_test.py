"""tools/check_layers.py finds each kind of fault, in a small house built for it, and none in the one that stands."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

SOUND = {
    "src/CMakeLists.txt": "regard_folder(tensor fmt::fmt)\n"
    "regard_folder(text regard_tensor)\n"
    "regard_folder(kernels regard_tensor hwy)\n"
    "regard_folder(model regard_kernels)\n",
    "src/tensor/view.h": '#pragma once\n#include <vector>\n#include "fmt/core.h"\n',
    "src/text/bytes.h": '#pragma once\n#include "tensor/view.h"\n',
    "src/kernels/norm.h": '#pragma once\n#include "tensor/view.h"\n#include "hwy/highway.h"\n',
    "src/kernels/norm.cc": '#include "kernels/norm.h"\n#define HWY_TARGET_INCLUDE "kernels/norm.cc"\n',
    "src/model/block.cc": '#include "kernels/norm.h"\n#include "tensor/view.h"\n',
    "bench/case.h": '#include "kernels/norm.h"\n',
    "apps/cli/main.cc": '#include "face.h"\n#include "case.h"\n#include "tensor/view.h"\n',
    "apps/cli/face.h": "#pragma once\n",
    "tests/support/ulps.h": "#pragma once\n",
    "tests/kernels/norm_test.cc": '#include "support/ulps.h"\n#include "kernels/norm.h"\n',
}


def faults_of(changes):
    """What the check says of the sound house with these files changed."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**SOUND, **changes}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        faults, _ = check_layers.check(root)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = check_layers.main([folder])
        assert status == (1 if faults else 0), printed.getvalue()
        return faults


class CheckLayers(unittest.TestCase):
    def assert_one_fault(self, changes, *parts):
        faults = faults_of(changes)
        self.assertEqual(len(faults), 1, faults)
        for part in parts:
            self.assertIn(part, faults[0])

    def test_a_sound_house_has_no_fault(self):
        self.assertEqual(faults_of({}), [])

    def test_a_folder_may_not_include_a_later_one(self):
        self.assert_one_fault(
            {"src/kernels/norm.cc": '#include "kernels/norm.h"\n\n#include "model/block.h"\n', "src/model/block.h": ""},
            "src/kernels/norm.cc:3:", "model/, which comes after it")

    def test_a_folder_may_not_include_what_it_does_not_link(self):
        self.assert_one_fault({"src/model/block.cc": '#include "text/bytes.h"\n'},
                              "src/model/block.cc:1:", "does not link it with text")

    def test_a_folder_may_not_link_a_later_one(self):
        self.assert_one_fault(
            {"src/CMakeLists.txt": SOUND["src/CMakeLists.txt"].replace("(tensor fmt", "(tensor regard_text fmt")},
            "src/CMakeLists.txt", "tensor links text")

    def test_two_files_may_not_include_each_other(self):
        self.assert_one_fault({"src/tensor/a.h": '#include "tensor/b.h"\n', "src/tensor/b.h": '#include "tensor/a.h"\n'},
                              "src/tensor/a.h -> src/tensor/b.h -> src/tensor/a.h")

    def test_a_long_way_round_is_a_cycle_too(self):
        self.assert_one_fault(
            {
                "src/tensor/a.h": '#include "tensor/b.h"\n',
                "src/tensor/b.h": '#include "tensor/c.h"\n#include "tensor/view.h"\n',
                "src/tensor/c.h": '  #  include "tensor/a.h"\n',
            }, "include each other")

    def test_a_file_may_not_include_itself(self):
        self.assert_one_fault({"src/tensor/a.h": '#include "tensor/a.h"\n'}, "include each other")

    def test_the_library_includes_no_face_no_bench_no_test(self):
        for name in ("face.h", "case.h", "support/ulps.h"):
            self.assert_one_fault({"src/model/block.cc": f'#include "{name}"\n'}, "src/ may not include from", name)

    def test_a_bench_includes_no_face(self):
        self.assert_one_fault({"bench/case.h": '#include "face.h"\n'}, "bench/ may not include from apps/")

    def test_a_face_includes_no_other_face(self):
        self.assert_one_fault({"apps/server/main.cc": '#include "face.h"\n'}, "apps/ may not include from apps/")

    def test_an_include_is_written_from_the_top(self):
        self.assert_one_fault({"src/kernels/norm.cc": '#include "norm.h"\n'}, "not written from the top")

    def test_an_include_that_is_not_there_is_named(self):
        self.assert_one_fault({"src/kernels/norm.cc": '#include "kernels/gone.h"\n'}, 'no "kernels/gone.h"')

    def test_a_folder_that_is_not_named_is_a_fault(self):
        self.assert_one_fault({"src/util/misc.h": ""}, "src/util/misc.h", "not named")
        self.assert_one_fault({"src/stray.h": ""}, "src/stray.h", "not named")

    def test_an_empty_house_is_not_a_sound_one(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(check_layers.main([folder]), 1)

    def test_this_house_stands(self):
        faults, files = check_layers.check(ROOT)
        self.assertEqual(faults, [])
        self.assertGreater(files, 20)


if __name__ == "__main__":
    unittest.main()
