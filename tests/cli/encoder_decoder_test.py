"""Models that read one text and say another: `why`, `patch` and `sweep` show and change their three attentions apart."""

import csv
import io
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, arrays, rounding

BAD_INPUT, USAGE = 1, 2
FAMILIES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"
SOURCE, TARGET = "3,14,15,9,26,5", "0,7,8,21"
S, T = 6, 4
TEXTS = ["--ids", SOURCE, "--decoder-ids", TARGET]
PARTS = ("encoder", "decoder", "cross")


class EncoderDecoders(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for family in ("t5", "marian", "mistral"):
            os.mkdir(cls.path(family))
            for name in ("config.json", "model.safetensors"):
                shutil.copy(FAMILIES / family / name, cls.path(family))

    def patch(self, family, *edits, more=()):
        words = [word for edit in edits for word in ("--edit", edit)]
        return self.document("patch", family, *TEXTS, *words, *more)

    def test_why_is_what_patch_finds(self):
        for family in ("t5", "marian"):
            document = self.document("why", family, *TEXTS)
            self.assertEqual([t["id"] for t in document["source"]], [int(i) for i in SOURCE.split(",")])
            self.assertEqual([t["id"] for t in document["tokens"]], [int(i) for i in TARGET.split(",")])
            self.assertEqual((document["verb"], document["row"]), ("why", T - 1))
            self.assertGreater(document["seconds"], 0)
            metric = ["--metric", document["metric"].replace("'<", "").replace(">'", "")]
            effect = lambda edit: self.patch(family, edit, more=metric)["effect"]
            self.assertEqual(len(document["by_source"]), S)
            for s, key in enumerate(document["by_source"]):
                self.assertEqual(key["position"], s)
                self.assertEqual(key["hide_from_last"], effect(f"block edge attention=cross row=-1 key={s}"))
                self.assertEqual(key["hide_from_all"], effect(f"block edge attention=cross key={s}"))
                others = ",".join(str(i) for i in range(S) if i != s)
                self.assertEqual(key["hide_in_encoder"], effect(f"block edge attention=encoder row={others} key={s}"))
                self.assertNotEqual(key["hide_from_all"], 0)
            for s, key in enumerate(document["by_key"]):
                self.assertEqual([key[n] for n in ("rollout", "keys_only", "values_only", "both")], [None] * 4)
                if s == T - 1:
                    self.assertEqual((key["hide_from_last"], key["hide_from_all"]), (None, 0))
                    continue
                self.assertEqual(key["hide_from_last"], effect(f"block edge row=-1 key={s}"))
                self.assertEqual(key["hide_from_all"], effect(f"block edge attention=decoder row={s + 1}: key={s}"))
            self.assertAlmostEqual(sum(key["attention"] for key in document["by_source"]), 1, delta=rounding(S))
            self.assertAlmostEqual(sum(key["attention"] for key in document["by_key"]), 1, delta=rounding(T))
            for part in PARTS:
                effects = document["by_head"][part + "_zero_z"]
                self.assertEqual([len(layer) for layer in effects], [2, 2])
                self.assertEqual(effects[1][0], effect(f"zero z attention={part} layer=1 head=0"))
                swept = self.document("sweep", family, *TEXTS, "--edit", f"zero z attention={part}", "--each",
                                      "layer,head", *metric)
                self.assertEqual(swept["effect"], effects)
            self.assertEqual(document["what_ifs"], 3 * S + 2 * (T - 1) + 3 * 4)
            receipts = {r["edit"]: (r["matched"], r["changed"]) for r in document["receipts"]}
            self.assertEqual(receipts, {
                "block edge attention=cross row=R key=S": (4 * S, 4 * S),
                "block edge attention=cross key=S": (4 * S * T, 4 * S * T),
                "block edge attention=decoder row=R key=S": (4 * (T - 1), 4 * (T - 1)),
                "block edge attention=decoder row=S+1: key=S": (4 * T * (T - 1) // 2, 4 * T * (T - 1) // 2),
                "block edge attention=encoder row=0:S,S+1: key=S": (4 * S * (S - 1), 4 * S * (S - 1)),
                "zero z attention=encoder layer=L head=H": (4 * S, 4 * S),
                "zero z attention=decoder layer=L head=H": (4 * T, 4 * T),
                "zero z attention=cross layer=L head=H": (4 * T, 4 * T)})

    def test_attention_is_what_read_shows(self):
        key = self.document("why", "t5", *TEXTS, "--no-heads", "--at", "1")
        self.assertEqual(key["by_head"], {part + "_zero_z": None for part in PARTS})
        for part, name, extent in (("cross", "by_source", S), ("decoder", "by_key", T)):
            weights = self.document("read", "t5", *TEXTS, "--attention", part, "--rows", "1")["weights"]
            for s in range(extent):
                mean = sum(weights[l][h][0][s] for l in (0, 1) for h in (0, 1)) / 4
                self.assertAlmostEqual(key[name][s]["attention"], mean, delta=rounding(1) * mean)

    def test_arrays_name_the_tokens_of_both_texts(self):
        result = self.run_program("read", "t5", *TEXTS, "--attention", "cross", "-o", "read.npz")
        self.assertEqual((result.status, result.err), (0, ""))
        found = arrays(self.path("read.npz"))
        for name, ids in (("ids", TARGET), ("key_ids", SOURCE)):
            expected = [int(i) for i in ids.split(",")]
            self.assertEqual(found[name][:2], ("<i4", [len(expected)]))
            self.assertEqual(memoryview(found[name][2]).cast("i").tolist(), expected)

    def test_why_at_an_earlier_row(self):
        document = self.document("why", "t5", *TEXTS, "--at", "1", "--metric", "logprob 9")
        shorter = self.document("why", "t5", "--ids", SOURCE, "--decoder-ids", "0,7", "--metric", "logprob 9")
        self.assertEqual((document["row"], document["base"]), (1, shorter["base"]))
        self.assertEqual(document["by_source"], shorter["by_source"])
        self.assertEqual(document["by_head"], shorter["by_head"])
        self.assertEqual([k["hide_from_all"] for k in document["by_key"][1:]], [0, 0, 0])

    def test_the_decoders_text_is_what_the_model_says(self):
        said = [0] + [t["id"] for t in self.document("generate", "t5", "--ids", SOURCE, "-n", "64")["generated"]]
        document = self.document("why", "t5", "--ids", SOURCE, "--no-heads")
        tokens = [t["id"] for t in document["tokens"]]
        self.assertEqual(tokens, said[:len(tokens)])
        self.assertGreater(len(tokens), 1)

    def test_pages_and_files(self):
        page = self.run_program("why", "t5", *TEXTS).out.decode()
        for title in ("the source, read by the target", "the source, read by itself", "the target, read by itself"):
            self.assertIn("== " + title, page)
        self.assertIn("36 what-ifs", page)
        for name in ("two.json", "two.csv", "two.svg", "two.html"):
            self.assertEqual(self.run_program("why", "t5", *TEXTS, "-o", name).status, 0)
        rows = list(csv.DictReader(io.StringIO(pathlib.Path(self.path("two.csv")).read_text(), newline="")))
        document = self.document("why", "t5", *TEXTS)
        self.assertEqual([row["part"] for row in rows], ["source"] * S + ["target"] * T)
        for row, key in zip(rows, document["by_source"] + document["by_key"]):
            self.assertEqual(float(row["hide_from_all"]), key["hide_from_all"])
        self.assertEqual(self.strict(pathlib.Path(self.path("two.json")).read_bytes()), {**document, "seconds": None})
        page = self.run_program("sweep", "t5", *TEXTS, "--edit", "block edge attention=cross row=-1", "--each",
                                "layer,key").out.decode()
        self.assertIn('key 4 "<26>"', page)  # a token of the source
        self.assertIn("attention=encoder", self.run_program("patch", "--help").out.decode())

    def test_null_edits_do_nothing(self):
        for edit in [f"scale z by=1 attention={part}" for part in PARTS] + ["scale edge by=1 attention=cross",
                                                                            "freeze pattern"]:
            document = self.patch("marian", edit)
            self.assertEqual((document["effect"], document["kl"], document["receipts"][0]["changed"]), (0, 0, 0))
            self.assertEqual(document["next_before"], document["next_after"])

    def test_values_of_another_source(self):
        other = ["--contrast-ids", "3,14,15,9,30,5", "--metric", "diff 9 17"]
        document = self.patch("t5", "patch attn_out from=contrast attention=cross", more=other)
        alone = self.document("patch", "t5", "--ids", "3,14,15,9,30,5", "--decoder-ids", TARGET, "--edit",
                              "scale z by=1", "--metric", "diff 9 17")
        self.assertEqual(document["edited"], document["contrast"])
        self.assertEqual(document["contrast"], alone["base"])
        self.assertEqual(document["recovery"], 0)
        self.assertNotEqual(document["effect"], 0)

    def test_a_stopped_sweep_goes_on_and_ends_with_the_same_file(self):
        source = ",".join(str(3 + i * 7 % 40) for i in range(60))
        words = ["sweep", "t5", "--ids", source, "--decoder-ids", TARGET, "--edit", "block edge attention=cross",
                 "--each", "layer,head,row,key", "-o"]
        self.assertEqual(self.run_program(*words, "whole.npz").status, 0)
        self.assertEqual(arrays(self.path("whole.npz"))["effect"][1], [2, 2, T, 60])
        process = subprocess.Popen([PROGRAM, *words, "stopped.npz"], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        partial = self.path("stopped.npz.partial")
        while process.poll() is None and not (os.path.exists(partial) and os.path.getsize(partial) > 2000):
            time.sleep(0.002)
        process.kill()
        process.wait()
        self.assertTrue(os.path.exists(partial), "it was done before it could be stopped")
        result = self.run_program(*words, "stopped.npz")
        self.assertEqual(result.status, 0)
        self.assertRegex(result.err, r"[0-9,]+ of 960 what-ifs were done before")
        self.assertEqual(pathlib.Path(self.path("stopped.npz")).read_bytes(),
                         pathlib.Path(self.path("whole.npz")).read_bytes())
        self.assertFalse(os.path.exists(partial))

    def test_what_is_wrong_is_named(self):
        patch = lambda edit, *more: ["patch", "t5", *TEXTS, "--edit", edit, *more]
        self.assert_refused(USAGE, [
            (patch("zero z attention=sideways"), "attention=sideways"),
            (patch("zero mlp_out attention=cross"), "cross attention has no mlp_out"),
            (patch(f"block edge attention=cross key={S}"), f"{S}"),
            (patch("block edge row=0 key=3"), "matches nothing"),
            (patch("zero z attention=cross", "--edit", "scale z by=2 attention=cross"), "same cell"),
            (["sweep", "t5", *TEXTS, "--edit", "zero z", "--edit", "zero z attention=encoder", "--each", "row"],
             "not the same in the encoder"),
            (["sweep", "t5", *TEXTS, "--edit", "zero z", "--each", "key"], "no edit has that selector"),
            (["patch", "mistral", "--ids", "3,4", "--edit", "zero z attention=cross"], "attention"),
            (["patch", "mistral", "--ids", "3,4", "--edit", "zero z", "--decoder-ids", "3"], "no encoder"),
            (["why", "mistral", "--ids", "3,4", "--decoder-ids", "3"], "no encoder"),
        ])
        self.assert_refused(BAD_INPUT, [
            (patch("zero z", "--to", "z layer=1"), "path patching"),
            (patch("zero z", "--metric", "cosine"), "no embedding"),
            (["why", "t5", *TEXTS, "--contrast-ids", "3,4"], "no contrast"),
            (["sweep", "t5", *TEXTS, "--edit", "zero z", "--each", "layer", "--full"], "--full"),
            (["why", "t5", "--ids", SOURCE, "--decoder-ids", "0,99"], "99"),
        ])


if __name__ == "__main__":
    unittest.main()
