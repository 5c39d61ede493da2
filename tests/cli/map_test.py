"""regard map: cells are pooled weights, and each kind of file can be read."""

import struct
import unittest
import xml.etree.ElementTree

from program import ProgramTest, arrays

TEXT = "hello 漢字 😀!"


class Map(ProgramTest):
    def test_cells_are_the_pooled_weights(self):
        read = self.document("read", "tiny.gguf", "-p", TEXT * 3, "--layers", "1", "--heads", "2", "--rows", "all",
                             "--stats", "weights")
        weights = read["weights"][0][0]
        n = len(read["tokens"])
        words = ("map", "tiny.gguf", "-p", TEXT * 3, "--layer", "-1", "--head", "2")
        whole = self.document(*words)
        self.assertEqual((whole["verb"], whole["layer"], whole["head"], whole["pool"]), ("map", 1, 2, "max"))
        self.assertEqual(whole["cells"], weights)  # fewer tokens than cells: every weight
        part = self.document(*words, "--rows", "5:40", "--keys", "2:", "--size", "7x5", "--pool", "sum")
        self.assertEqual(part["shape"], [5, 7])
        self.assertEqual((part["row_edges"][0], part["row_edges"][-1], part["key_edges"][-1]), (5, 40, n))
        for y in range(5):
            for x in range(7):
                total = sum(sum(weights[i][part["key_edges"][x]:part["key_edges"][x + 1]])
                            for i in range(part["row_edges"][y], part["row_edges"][y + 1]))
                self.assertAlmostEqual(part["cells"][y][x], total, delta=1e-6 * max(total, 1))

    def test_files_and_the_page(self):
        words = ("map", "tiny.gguf", "-p", TEXT * 3, "--layer", "0", "--head", "1")
        files = [self.path("m." + e) for e in ("json", "npz", "svg", "png")]
        result = self.run_program(*words, *[w for f in files for w in ("-o", f)])
        self.assertEqual((result.status, result.out, result.err), (0, b"", ""))
        with open(files[0], "rb") as file:
            document = self.strict(file.read())
        n = len(document["tokens"])
        found = arrays(files[1])
        self.assertEqual(found["cells"][:2], ("<f4", [n, n]))
        xml.etree.ElementTree.parse(files[2])
        with open(files[3], "rb") as file:
            png = file.read()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", png[16:24]), (n, n))
        page = self.run_program(*words, env={"COLUMNS": "50"})
        text = page.out.decode()
        self.assertEqual((page.status, page.err), (0, ""))
        self.assertIn("layer 0 head 1", text)
        self.assertIn("█", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 50)
        coloured = self.run_program(*words, env={"CLICOLOR_FORCE": "1", "COLORTERM": "truecolor", "TERM": "xterm"})
        self.assertIn("▀", coloured.out.decode())

    def test_usage(self):
        for words, part in (
                (["--head", "0"], "--layer"), (["--layer", "0"], "--head"), (["--layer", "2", "--head", "0"], "layer"),
                (["--layer", "0", "--head", "0", "--rows", "1,3"], "one piece"),
                (["--layer", "0", "--head", "0", "--pool", "min"], "pooling"),
                (["--layer", "0", "--head", "0", "--size", "9"], "--size"),
                (["--layer", "0", "--head", "0", "--size", "0x9"], "--size"),
                (["--layer", "0", "--head", "0", "--keys", "0:99"], "99"),
                (["--layer", "0", "--head", "0", "-o", "x.csv"], ".csv")):
            with self.subTest(words=words):
                self.assert_one_line(self.run_program("map", "tiny.gguf", "-p", TEXT, *words), 2, part)


if __name__ == "__main__":
    unittest.main()
