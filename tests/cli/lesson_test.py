"""regard lesson: its numbers against arithmetic in exact fractions, its page in a browser, its questions in the terminal."""

import math
import re
import unittest
from fractions import Fraction as F

import lesson_browser
from program import ProgramTest

X = [[F(1), F(0)], [F(0), F(1)], [F(1), F(1)]]
V_OF = [[F(2), F(0)], [F(0), F(1)]]


def rounding(size):
    """As in tests/lesson/lesson_test.cc: fewer than 16 roundings of numbers not larger than the result or 1."""
    return 16 * 2.0**-24 * max(1.0, abs(size))


def times(a, b):
    return [[sum((x * b[k][j] for k, x in enumerate(row)), F(0)) for j in range(len(b[0]))] for row in a]


def turned(a):
    return [list(column) for column in zip(*a)]


def head(xq, xk, xv, values=V_OF, visible=lambda row, key: True):
    """(weights, outputs) of the worked head: exp(score) is 2 to the dot product of the two rows."""
    weights = []
    for i, q in enumerate(xq):
        powers = [F(2) ** int(sum(a * b for a, b in zip(q, k))) if visible(i, j) else F(0) for j, k in enumerate(xk)]
        weights.append([p / sum(powers) for p in powers])
    return weights, times(weights, times(xv, values))


def flat(nested):
    return [x for item in nested for x in flat(item)] if isinstance(nested, list) else [nested]


class Lesson(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = cls.path("lesson.html")
        result = cls().run_program("lesson", "tiny.gguf", "-p", "hello world hello world", "--json", "-o", cls.page)
        assert (result.status, result.err) == (0, ""), result.err
        cls.lesson = cls().strict(result.out)
        cls.steps = {step["id"]: step for step in cls.lesson["steps"]}

    def runTest(self):  # so that setUpClass may make one
        pass

    def value(self, step, name):
        return self.steps[step]["values"][name]

    def assert_exactly(self, step, name, expected):
        """The fractions are these, and the engine's numbers are they, rounded."""
        value = self.value(step, name)
        expected = flat(expected)
        self.assertEqual([None if f is None else F(f) for f in flat(value["fraction"])], expected, (step, name))
        for number, truth in zip(flat(value["number"]), expected, strict=True):
            self.assertAlmostEqual(number, float(truth), delta=rounding(float(truth)), msg=(step, name))
        self.assertEqual(math.prod(value["shape"]), len(expected))

    def assert_factor(self, step, name, expected, factor, written):
        """The same of multiples of something that is no fraction."""
        value = self.value(step, name)
        for number, fraction, exact, truth in zip(*(flat(value[k]) for k in ("number", "fraction", "exact")), flat(expected),
                                                  strict=True):
            self.assertAlmostEqual(number, float(truth) * factor, delta=rounding(float(truth) * factor))
            self.assertEqual(fraction, "0" if truth == 0 else None)
            if truth not in (0, 1, -1):
                self.assertEqual(exact, written.format(truth))

    def test_one_retrieval(self):
        self.assert_exactly("a", "scores", [3, 1, 0])
        powers = [math.exp(3), math.exp(1), 1]
        for number, power in zip(flat(self.value("a", "weights")["number"]), powers, strict=True):
            self.assertAlmostEqual(number, power / sum(powers), delta=rounding(1))
        self.assert_exactly("a", "four_weights", [F("0.50"), F("0.30"), F("0.15"), F("0.05")])
        values = [[1, 0], [0, 1], [1, 1], [0, 0]]
        self.assert_exactly("a", "four_output", times([[F(1, 2), F(3, 10), F(3, 20), F(1, 20)]], values))

    def test_the_worked_head(self):
        weights, outputs = head(X, X, X)
        self.assertEqual(weights, [[F(2, 5), F(1, 5), F(2, 5)], [F(1, 5), F(2, 5), F(2, 5)], [F(1, 4), F(1, 4), F(1, 2)]])
        self.assertEqual(outputs, [[F("1.6"), F("0.6")], [F("1.2"), F("0.8")], [F("1.5"), F("0.75")]])
        self.assert_exactly("b", "weights", weights)
        self.assert_exactly("b", "outputs", outputs)
        self.assert_exactly("b", "q", X)
        self.assert_exactly("b", "v", times(X, V_OF))
        self.assert_factor("b", "k", X, math.sqrt(2) * math.log(2), "{} √2 ln 2")
        self.assert_factor("b", "scores", times(X, turned(X)), math.log(2), "{} ln 2")
        self.assertEqual(self.value("b", "weights")["shape"], [3, 3])

    def test_keys_and_values_apart(self):
        changed = [X[0], [F(0), F(2)], X[2]]
        expected = {"before": (X, X, [F("1.5"), F("0.75")]), "both": (changed, changed, [F("1.2"), F("1.2")]),
                    "keys_only": (changed, X, [F("1.2"), F("0.8")]), "values_only": (X, changed, [F("1.5"), F("1.0")])}
        for name, (keys, values, output) in expected.items():
            weights, outputs = head(X, keys, values)
            self.assertEqual(outputs[2], output)
            self.assert_exactly("c", name, outputs[2])
            self.assert_exactly("c", name + "_weights", weights[2])
        self.assert_exactly("c", "together", [F(0), F(9, 20) - F(1, 20) - F(1, 4)])

    def test_masks(self):
        weights, outputs = head(X, X, X, visible=lambda row, key: key <= row)
        self.assertEqual((weights[1], outputs[1]), ([F(1, 3), F(2, 3), F(0)], [F(2, 3), F(2, 3)]))
        self.assert_exactly("d", "causal_weights", weights)
        self.assert_exactly("d", "causal_outputs", outputs)
        cut = [[w if j <= i else F(0) for j, w in enumerate(row)] for i, row in enumerate(head(X, X, X)[0])]
        self.assert_exactly("d", "cut_weights", cut)
        self.assert_exactly("d", "cut_sums", [sum(row) for row in cut])
        self.assert_exactly("d", "cut_outputs", times(cut, times(X, V_OF)))
        weights, outputs = head(X, X, X, visible=lambda row, key: key < 2)
        self.assert_exactly("d", "padding_weights", weights)
        self.assert_exactly("d", "padding_outputs", outputs)

    def test_the_cache_is_counted(self):
        self.assert_exactly("d", "one_by_one_same_bits", [1])
        lengths = self.value("d", "cache_n")["number"]
        for n, (again, cached, work_again, work_cached) in zip(lengths, self.value("d", "cache_counts")["number"], strict=True):
            n = int(n)
            self.assertEqual(again, sum(t * (t + 1) // 2 for t in range(1, n + 1)))
            self.assertEqual(cached, n * (n + 1) // 2)
            self.assertEqual(work_again, 12 * n * (n + 1) // 2 + 4 * again)
            self.assertEqual(work_cached, 12 * n + 4 * cached)

    def test_the_root_of_d(self):
        self.assertEqual(self.value("e", "d")["number"], [1, 4, 16, 64, 256, 1024])
        deviation = self.value("e", "deviation")["number"]
        # The spread's relative error is half the variance's, whose standard deviation tests/lesson/lesson_test.cc derives.
        for d, spread in zip([1, 4, 16, 64, 256, 1024], deviation, strict=True):
            self.assertAlmostEqual(spread / math.sqrt(d), 1, delta=5 * (math.sqrt(2 / (512 * d)) + math.sqrt(2) / 1024))
        for t, weights in zip(self.value("e", "temperature")["number"], self.value("e", "temperature_weights")["number"],
                              strict=True):
            powers = [math.exp(s / t) for s in (3, 1, 0)]
            for weight, power in zip(weights, powers, strict=True):
                self.assertAlmostEqual(weight, power / sum(powers), delta=rounding(6))

    def test_heads_and_groups(self):
        swapped = [[b, a] for a, b in X]
        identity = [[F(1), F(0)], [F(0), F(1)]]
        first, second = head(X, X, X)[1], head(swapped, X, X, identity)[1]
        beside = [a + b for a, b in zip(first, second)]
        w_o = [[F(1, 2), F(0)], [F(0), F(1, 2)], [F(1, 2), F(0)], [F(0), F(1, 2)]]
        self.assert_exactly("f", "head_1", first)
        self.assert_exactly("f", "head_2", second)
        self.assert_exactly("f", "side_by_side", beside)
        self.assert_exactly("f", "output", times(beside, w_o))
        self.assertEqual([self.value("f", n)["shape"] for n in ("head_1", "head_2", "side_by_side", "w_o", "output")],
                         [[3, 2], [3, 2], [3, 4], [4, 2], [3, 2]])
        self.assert_exactly("f", "grouped_head_2", head(swapped, X, X)[1])
        source = [[F(1), F(1)], [F(2), F(0)]]
        weights, outputs = head(X, source, source)
        self.assert_exactly("f", "cross_weights", weights)
        self.assert_exactly("f", "cross_outputs", outputs)
        self.assert_exactly("f", "cache_bytes", [2 * 16 * 128 * 2, 2 * 8 * 128 * 2, 2 * 8 * 64 * 2, 2 * 2 * 64 * 2])
        self.assert_exactly("f", "cache_saved", [1 - F(8, 16), 1 - F(2, 8)])

    def test_order(self):
        self.assert_exactly("g", "permuted_without_positions", [F("1.5"), F("0.75")] * 3)
        with_rotary = self.value("g", "permuted_with_rotary")["number"]
        for row in with_rotary[1:]:
            self.assertGreater(max(abs(a - b) for a, b in zip(row, with_rotary[0])), 0.01)
        for distance, row in zip(self.value("g", "distances")["number"], self.value("g", "rotary_dot_products")["number"],
                                 strict=True):
            n = distance[0]
            q = [math.cos(n) - 2 * math.sin(n), 2 * math.cos(n) + math.sin(n)]
            for dot in row:
                self.assertAlmostEqual(dot, 2 * q[0] + q[1], delta=rounding(5))

    def test_the_block_of_a_model(self):
        rows = {name: self.value("h", name)["number"] for name in
                ("resid_pre", "attention_norm", "attn_out", "resid_mid", "mlp_norm", "mlp_out", "resid_post")}
        self.assertEqual(self.value("h", "largest_imbalance")["number"], 0)
        for i in range(1, 5):
            self.assertAlmostEqual(rows["resid_pre"][i] + rows["attn_out"][i], rows["resid_mid"][i], delta=rounding(rows["resid_mid"][i]))
            self.assertAlmostEqual(rows["resid_mid"][i] + rows["mlp_out"][i], rows["resid_post"][i], delta=rounding(rows["resid_post"][i]))
        document = self.document("read", "tiny.gguf", "-p", "hello world hello world", "--stats", "weights", "--resid")
        layers, last = self.lesson["model"]["layers"], len(self.lesson["tokens"]) - 1
        self.assertEqual(rows["resid_pre"][1:], document["resid"][layers // 2][0][:4])
        self.assertEqual(self.value("h", "head_weights")["number"], [h[0] for h in document["weights"][layers // 2]])
        self.assertEqual(len(document["weights"][0][0][0]), last + 1)

    def test_cost(self):
        self.assert_exactly("i", "n", [100, 200])
        self.assert_exactly("i", "pairs", [10000, 40000])
        for way in ("square", "kernel"):
            positions = self.value("i", way + "_positions")["number"]
            self.assertEqual(positions, [512 * 2**i for i in range(len(positions))])
            for seconds in self.value("i", way + "_seconds")["number"]:
                self.assertGreater(seconds, 0)
        self.assertLessEqual(max(positions), 32768)

    def test_reading_is_not_explaining(self):
        self.assert_exactly("j", "weights", [F("0.2"), F("0.8"), F("0.7"), F("0.3")])
        self.assert_exactly("j", "outputs", [2, 1, 2, 1])
        reads = self.value("j", "cut_reads")["number"]
        text = ("-p", "hello world hello world")
        weights = self.document("read", "tiny.gguf", *text, "--stats", "weights")["weights"]
        last = len(self.lesson["tokens"]) - 1
        for layer, head_number, key, weight, effect in reads:
            layer, head_number, key = int(layer), int(head_number), int(key)
            self.assertEqual(weights[layer][head_number][0][key], weight)
            edit = f"block edge layer={layer} head={head_number} row={last} key={key}"
            self.assertEqual(self.document("patch", "tiny.gguf", *text, "--edit", edit)["effect"], effect)
        # The first is at least half as heavy as the heaviest, and none so heavy changes less.
        heavy = [r for r in reads if r[3] >= reads[0][3]]
        self.assertEqual(min(abs(r[4]) for r in heavy), abs(reads[0][4]))

    def test_exercises(self):
        self.assert_exactly("k", "new_query", [w for part in head([[F(2), F(0)]], X, X) for w in part[0]])
        tokens = [X[2], X[0], X[1]]
        weights, outputs = head(tokens, tokens, tokens, visible=lambda row, key: key <= row)
        self.assert_exactly("k", "masked_row", weights[1] + outputs[1] + [sum(head(tokens, tokens, tokens)[0][1][:2])])
        changed = [[F(2), F(0)], X[1], X[2]]
        self.assert_exactly("k", "one_path", head(X, changed, X)[1][2] + head(X, X, changed)[1][2])

    def test_one_training_step(self):
        weights, outputs = head([X[2]], X, X)
        p, target, rate = weights[0], [F(1), F(1)], F(1, 2)
        error = [o - t for o, t in zip(outputs[0], target)]
        values = times(X, V_OF)
        d_weights = [sum(e * v for e, v in zip(error, row)) for row in values]
        mean = sum(a * b for a, b in zip(p, d_weights))
        d_scores = [a * (b - mean) for a, b in zip(p, d_weights)]
        d_v = [[a * e for e in error] for a in p]
        d_q, d_k = times([d_scores], X), [[s, s] for s in d_scores]
        self.assert_exactly("l", "loss", [sum(e * e for e in error) / 2])
        self.assert_exactly("l", "d_output", error)
        self.assert_exactly("l", "d_weights", d_weights)
        self.assert_exactly("l", "d_scores", d_scores)
        self.assert_exactly("l", "d_v", d_v)
        self.assert_factor("l", "d_q", d_q, math.log(2), "{} ln 2")
        self.assert_factor("l", "d_k", d_k, 1 / math.sqrt(2), "{}/√2")
        d_wq, d_wk, d_wv = times(turned([X[2]]), d_q), times(turned(X), d_k), times(turned(X), d_v)
        self.assert_factor("l", "d_w_q", d_wq, math.log(2), "{} ln 2")
        self.assert_factor("l", "d_w_k", d_wk, 1 / math.sqrt(2), "{}/√2")
        self.assert_exactly("l", "d_w_v", d_wv)
        self.assert_exactly("l", "w_v_after", [[a - rate * b for a, b in zip(*rows)] for rows in zip(V_OF, d_wv)])
        # What comes after is no fraction any more: in floating point.
        w_q = [[(i == j) - float(rate * d_wq[i][j]) * math.log(2) for j in range(2)] for i in range(2)]
        w_k = [[(i == j) * math.sqrt(2) * math.log(2) - float(rate * d_wk[i][j]) / math.sqrt(2) for j in range(2)] for i in range(2)]
        w_v = [[float(V_OF[i][j] - rate * d_wv[i][j]) for j in range(2)] for i in range(2)]
        x = [[float(a) for a in row] for row in X]
        multiply = lambda a, b: [[sum(s * b[k][j] for k, s in enumerate(row)) for j in range(len(b[0]))] for row in a]
        q, k, v = multiply([x[2]], w_q), multiply(x, w_k), multiply(x, w_v)
        powers = [math.exp(s / math.sqrt(2)) for s in multiply(q, turned(k))[0]]
        after = [a / sum(powers) for a in powers]
        output = multiply([after], v)[0]
        for name, expected in (("weights_after", after), ("output_after", output),
                               ("loss_after", [sum((o - 1) ** 2 for o in output) / 2])):
            for number, truth in zip(flat(self.value("l", name)["number"]), expected, strict=True):
                self.assertAlmostEqual(number, truth, delta=rounding(2), msg=name)
        move = next(b for b in self.steps["l"]["blocks"] if b["kind"] == "exploration")
        losses = {check["settings"][0]: check["loss"] for check in move["checks"]}
        self.assertEqual(losses[0.5], self.value("l", "loss_after")["number"])
        self.assertGreater(max(losses.values()), losses[0])  # a step can be too large
        self.assertLess(self.value("l", "loss_after")["number"], self.value("l", "loss")["number"])

    @unittest.skipUnless(lesson_browser.browser(), "there is no Chromium here")
    def test_the_page_in_a_browser(self):
        found = lesson_browser.drive(self.page, self.folder)
        self.assertEqual(found["complaints"], [])
        blocks = [b for step in self.lesson["steps"] for b in step["blocks"]]
        moved = 0
        for block in (b for b in blocks if b["kind"] == "exploration"):
            *shown, reset = found["explorations"][block["id"]]
            for check, page in zip(block["checks"], shown, strict=True):
                largest = max(abs(s) for s in flat(check["scores"]) if s is not None)
                for name in ("weights", "outputs"):
                    for engine, browser in zip(flat(check[name]), flat(page[name]), strict=True):
                        # A score's error is an error of its exponential, of the same size.
                        self.assertAlmostEqual(engine, browser, delta=rounding(max(abs(engine), 1) * (1 + largest)),
                                               msg=(block["id"], check["settings"]))
                        moved += 1
                self.assertEqual(check["loss"] is None, page["loss"] is None)
                if check["loss"] is not None:
                    self.assertAlmostEqual(check["loss"], page["loss"], delta=rounding(max(check["loss"], 1) * (1 + largest)))
                self.assertGreater(page["bands"], 0)
            self.assertEqual(len(reset["reset"]), len(block["readers"]))
        self.assertGreater(moved, 1000)
        marks = {"right": "✓", "wrong": "✗", "unreadable": "?"}
        for block in (b for b in blocks if b["kind"] == "exercise"):
            page = found["exercises"][block["id"]]
            for check, mark in zip(block["checks"], page["marks"], strict=True):
                # An empty field is not marked: nothing was said.
                self.assertEqual(mark, marks[check["verdict"]] if check["typed"] else "", (block["id"], check))
            self.assertIn("All right", page["verdict"])
            self.assertEqual(page["more"], 1 + len(block["way"]))
        languages = found["languages"]
        self.assertEqual((languages["en"]["lang"], languages["zh-Hans"]["lang"]), ("en", "zh-Hans"))
        self.assertEqual(languages["en"]["sections"], 12)
        self.assertIn("One retrieval", languages["en"]["heading"])
        self.assertIn("一次读取", languages["zh-Hans"]["heading"])
        self.assertNotIn("One retrieval", languages["zh-Hans"]["heading"])

    def test_the_page_needs_nothing_else(self):
        with open(self.page, encoding="utf-8") as file:
            text = file.read()
        self.assertIsNone(re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(""", text))

    def test_the_terminal_in_both_languages(self):
        result = self.run_program("lesson", "--step", "b", env={"COLUMNS": "70"})
        text = result.out.decode()
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertIn("2/5", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 70)
        chinese = self.run_program("lesson", "--step", "b", "--language", "zh").out.decode()
        self.assertIn("手算", chinese)
        self.assertNotIn("by hand", chinese)

    def test_questions_are_asked_and_checked(self):
        answers = "0.4\nx\nh\n4/9\n1/9\n0.44\n16/9\n5/9\n\ns\n"
        result = self.run_program("lesson", "--step", "k", "--ask", stdin=answers.encode())
        text = result.out.decode()
        self.assertEqual((result.status, result.err), (0, ""))
        for part in ("Not yet", "Write a fraction", "Right: 4/9", "Right: 16/9", "All right. The way:"):
            self.assertIn(part, text)
        self.assertEqual(text.count("All right"), 1)
        stopped = self.run_program("lesson", "--ask", stdin=b"f\nq\n").out.decode()
        self.assertIn("One retrieval", stopped)
        self.assertIn("Several heads", stopped)
        self.assertNotIn("Masks, and", stopped)

    def test_without_a_model_it_takes_the_one_inside(self):
        document = self.document("lesson", "--step", "h", "--step", "j")
        self.assertEqual(document["model"]["name"], "default")
        tokens = [token["text"] for token in document["tokens"]]
        self.assertEqual(tokens[-2:], ["called", "him"])
        for step in document["steps"]:
            self.assertIn("default", str(step["blocks"]))
        # Two heads read the very word that is said next, the one as much as the other: one read does it all, one nothing.
        reads = document["steps"][1]["values"]["cut_reads"]["number"]
        *_, key, weight, effect = reads[-1]
        self.assertEqual(tokens[int(key)], "tom")
        idle = [read for read in reads if read[2] == key and read[3] >= weight and abs(read[4]) < abs(effect) / 20]
        self.assertTrue(idle, reads)
        for layer, head, key, weight, effect in (reads[-1], idle[0]):
            edit = f"block edge layer={layer:.0f} head={head:.0f} row=-1 key={key:.0f}"
            self.assertEqual(self.document("patch", "default", "-p", " ".join(tokens[1:]), "--edit", edit)["effect"], effect)
        self.assertIsNone(self.document("lesson", "--step", "a")["model"])

    def test_usage(self):
        self.assert_refused(2, [(["lesson", "--step", "z"], '"z"'), (["lesson", "--language", "fr"], '"fr"'),
                                (["lesson", "--ask", "--whole"], "--whole"), (["lesson", "-o", "l.svg"], ".html")])
        self.assert_refused(1, [(["lesson", "nothing.gguf", "--step", "a"], "nothing.gguf"),
                                (["lesson", "-p", "unheard"], "unheard")])


if __name__ == "__main__":
    unittest.main()
