"""fetch org/name from a hub that cuts, stalls, leads elsewhere, lies and counts wrongly: the files arrive whole and checked,
or one line says why not."""

import hashlib
import json
import os
import signal
import struct
import subprocess
import time
import unittest

from fake_hub import COMMIT, FakeHub, git_sum, stall, status
from program import PROGRAM, ProgramTest


def safetensors(names, size=40000):
    data = bytes(i * 7 % 251 for i in range(size))
    header = json.dumps({n: {"dtype": "U8", "shape": [size], "data_offsets": [i * size, (i + 1) * size]}
                         for i, n in enumerate(names)}).encode()
    return struct.pack("<Q", len(header)) + header + data * len(names)


WEIGHTS = safetensors(["a"])
SHARDS = {"model-00001-of-00002.safetensors": (safetensors(["a"]), True),
          "model-00002-of-00002.safetensors": (safetensors(["b"]), True)}
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
SMALL = {"config.json": (b'{"model_type": "toy"}', False), "tokenizer.json": (b"{}", False), "README.md": (b"# toy", False),
         "LICENSE": (b"terms", False), "empty.txt": (b"", False), "vocab.txt": (b"", False)}
NOT_WANTED = {"pytorch_model.bin": (b"PK", True), "flax_model.msgpack": (b"x", True), "model.fp16.safetensors": (b"x", True),
              "run.py": (b"x", False), "onnx/model.onnx": (b"x", True)}


class Hub(ProgramTest):
    def setUp(self):
        self.home = self.path(self._testMethodName)
        self.cache = os.path.join(self.home, "hub")
        self.hub = self.new_hub({**SMALL, **NOT_WANTED, "model.safetensors": (WEIGHTS, True)})

    def new_hub(self, files, **more):
        hub = FakeHub("org/toy", files, **more)
        self.addCleanup(hub.close)
        return hub

    def env(self, **more):
        return {"HF_ENDPOINT": self.hub.endpoint, "HF_HOME": self.home, "HF_HUB_DOWNLOAD_TIMEOUT": "1", **more}

    def fetch(self, name="org/toy", remarks="", **more):
        result = self.run_program("fetch", name, "--json", env=self.env(**more))
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"\A%s\Z" % remarks)
        return self.strict(result.out)["fetched"]

    def refused(self, *parts, name="org/toy", **more):
        result = self.run_program("fetch", name, env=self.env(**more))
        self.assertEqual((result.status, result.out), (1, b""), result.err)
        last = result.err.rstrip("\n").split("\n")[-1]
        self.assertTrue(last.startswith("regard: "), result.err)
        for part in parts:
            self.assertIn(part, last)
        self.assert_nothing_unchecked()

    def blobs(self):
        return os.path.join(self.cache, "models--org--toy", "blobs")

    def assert_nothing_unchecked(self):
        for name in os.listdir(self.blobs()) if os.path.isdir(self.blobs()) else []:
            if not name.endswith(".incomplete"):
                with open(os.path.join(self.blobs(), name), "rb") as file:
                    data = file.read()
                self.assertIn(name, (git_sum(data), hashlib.sha256(data).hexdigest()))

    def faults(self, *faults, name="model.safetensors"):
        self.hub.faults[name] = list(faults)

    def cut(self, after, **more):
        def fault(handler):
            self.hub.send_file(handler, WEIGHTS, stop=after, **more)
            return True
        return fault

    def send(self, data, **more):
        def fault(handler):
            self.hub.send_file(handler, data, **more)
            return True
        return fault

    def assert_whole(self, fetched, weights=WEIGHTS):
        with open(os.path.join(fetched["path"], "model.safetensors"), "rb") as file:
            self.assertEqual(file.read(), weights)

    # What goes right.

    def test_the_hubs_own_layout(self):
        fetched = self.fetch()
        folder = os.path.join(self.cache, "models--org--toy")
        self.assertEqual(fetched["path"], os.path.join(folder, "snapshots", COMMIT))
        self.assertEqual((fetched["licence"], fetched["was_here"]), ("apache-2.0", False))
        self.assertEqual(fetched["licence_file"], os.path.join(fetched["path"], "LICENSE"))
        self.assertEqual(sorted(os.listdir(fetched["path"])),
                         ["LICENSE", "README.md", "config.json", "model.safetensors", "tokenizer.json", "vocab.txt"])
        with open(os.path.join(folder, "refs", "main"), encoding="ascii") as file:
            self.assertEqual(file.read(), COMMIT)
        self.assertEqual(os.readlink(os.path.join(fetched["path"], "config.json")),
                         "../../blobs/" + git_sum(SMALL["config.json"][0]))
        self.assert_whole(fetched)
        self.assert_nothing_unchecked()
        self.assertEqual([n for n in os.listdir(self.blobs()) if n.endswith(".incomplete")], [])
        # Again: nothing but the listing is asked for. Damaged: fetched again.
        self.hub.requests.clear()
        self.assertTrue(self.fetch()["was_here"])
        self.assertEqual(len(self.hub.requests), 1)
        with open(os.path.join(fetched["path"], "model.safetensors"), "r+b") as file:
            file.write(b"x")
        self.assertFalse(self.fetch()["was_here"])
        self.assert_whole(fetched)

    def test_what_is_here_is_found_by_its_name(self):
        missing = self.run_program("info", "org/toy", env=self.env())
        self.assert_one_line(missing, 1, "org/toy", "regard fetch org/toy", self.cache)
        self.fetch()
        listed = self.document("models", env=self.env())["models"][-1]
        self.assertEqual((listed["name"], listed["here"], listed["runs"]), ("org/toy", True, None))
        self.assertGreater(listed["installed_bytes"], len(WEIGHTS))
        out = self.path("out-of-hub.safetensors")
        result = self.run_program("convert", "org/toy", out, "--json", env=self.env(HF_ENDPOINT="http://127.0.0.1:1"))
        self.assertEqual((result.status, result.err), (0, ""))
        with open(out, "rb") as file:
            self.assertEqual(file.read()[-40000:], WEIGHTS[-40000:])

    def test_shards_of_the_index_alone(self):
        self.hub = self.new_hub({**SMALL, **SHARDS, "model.safetensors.index.json": (INDEX, False),
                                 "model-00003-of-00003.safetensors": (b"stray", True)})
        names = os.listdir(self.fetch()["path"])
        self.assertIn("model-00002-of-00002.safetensors", names)
        self.assertNotIn("model-00003-of-00003.safetensors", names)
        self.hub.files.pop("model-00002-of-00002.safetensors")
        self.hub.commit = "f" * 40
        self.refused("model-00002-of-00002.safetensors", "not there")

    def test_gguf(self):
        parts = {f"q8-0000{i}-of-00002.gguf": (b"GGUF" + bytes([i]), True) for i in (1, 2)}
        self.hub = self.new_hub({**SMALL, "q4.gguf": (b"GGUF4", True), **parts})
        self.refused("several GGUF files", "q4.gguf (5 bytes)", "q8-00001-of-00002.gguf", "regard fetch org/toy:q4.gguf")
        self.refused("no file q5.gguf", "q4.gguf", name="org/toy:q5.gguf")
        fetched = self.fetch("org/toy:q4.gguf")
        self.assertEqual(sorted(os.listdir(os.path.dirname(fetched["path"]))), ["LICENSE", "README.md", "q4.gguf"])
        fetched = self.fetch("org/toy:q8-00002-of-00002.gguf")
        self.assertTrue(fetched["path"].endswith("/q8-00001-of-00002.gguf"))
        self.assertTrue(os.path.exists(fetched["path"].replace("-00001-", "-00002-")))
        for part in parts:
            self.hub.files.pop(part)
        self.hub.commit = "e" * 40
        self.hub.revisions = {"refs/pr/1"}
        self.assertTrue(self.fetch("org/toy@refs/pr/1")["path"].endswith("/q4.gguf"))  # the only one

    def test_revisions(self):
        self.refused("no such revision", name="org/toy@v9")
        self.hub.revisions.add("v1/a")
        self.fetch("org/toy@v1/a")
        folder = os.path.join(self.cache, "models--org--toy")
        self.assertTrue(os.path.isfile(os.path.join(folder, "refs", "v1", "a")))
        self.assertFalse(os.path.exists(os.path.join(folder, "refs", "main")))
        self.fetch("org/toy@" + COMMIT)
        self.assertEqual(os.listdir(os.path.join(folder, "refs")), ["v1"])

    def test_the_token_goes_to_the_hub_alone(self):
        self.hub.token, self.hub.elsewhere = "hf_secret", True
        self.refused("no such model, or shows it only to some", "HF_TOKEN")
        self.refused("does not accept the token", "HF_TOKEN", HF_TOKEN="hf_wrong")
        self.hub.requests.clear()
        self.assert_whole(self.fetch(HF_TOKEN="hf_secret"))
        seen = {(server, token) for server, _, token, _ in self.hub.requests}
        self.assertEqual(seen, {("hub", "Bearer hf_secret"), ("storage", None)})
        # From files, too.
        token = self.path("token-of-mine")
        with open(token, "w", encoding="ascii") as file:
            file.write("hf_secret\n")
        self.fetch(HF_TOKEN_PATH=token)
        os.rename(token, os.path.join(self.home, "token"))
        self.fetch()
        bad = self.run_program("fetch", "org/toy", env=self.env(HF_TOKEN="a b"))
        self.assert_one_line(bad, 2, "HF_TOKEN")

    def test_offline(self):
        self.refused("are not here", "HF_HUB_OFFLINE", HF_HUB_OFFLINE="1")
        self.fetch()
        self.hub.requests.clear()
        self.assertTrue(self.fetch(HF_HUB_OFFLINE="1")["was_here"])
        self.assertEqual(self.hub.requests, [])

    def test_a_proxy_of_the_environment(self):
        self.assert_whole(self.fetch(HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.endpoint))
        self.assertEqual({server for server, _, _, _ in self.hub.requests}, {"proxy"})
        self.refused("cannot be reached", HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.endpoint,
                     no_proxy="hub.invalid")

    def test_two_at_once(self):
        self.faults(lambda handler: time.sleep(1) or False)
        command = [PROGRAM, "fetch", "org/toy", "--json"]
        both = [subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.environment(**self.env(HF_HUB_DOWNLOAD_TIMEOUT="20"))) for _ in range(2)]
        results = [process.communicate(timeout=60) for process in both]
        self.assertEqual([(process.returncode, err) for process, (_, err) in zip(both, results)], [(0, b"")] * 2)
        self.assertEqual(len(self.hub.asked("model.safetensors")), 1)
        self.assert_whole(self.strict(results[0][0])["fetched"])

    # What goes wrong, and is put right.

    def test_a_cut_download_goes_on_where_it_was(self):
        self.faults(self.cut(10000), self.cut(5000))
        self.assert_whole(self.fetch(remarks=r"(org/toy, model.safetensors: .*; trying again in 1 s\n){2}"))
        self.assertEqual([r[3] for r in self.hub.asked("model.safetensors")], [None, "bytes=10000-", "bytes=15000-"])

    def test_a_second_run_goes_on_where_the_first_one_gave_up(self):
        self.faults(self.cut(10000), *[status(503, Retry_After="0")] * 5)
        self.refused("status 503", "the same command goes on")
        self.hub.requests.clear()
        self.assert_whole(self.fetch())
        self.assertEqual([r[3] for r in self.hub.asked("model.safetensors")], ["bytes=10000-"])

    def test_a_part_of_something_else_is_thrown_away(self):
        self.faults(self.cut(10000), *[status(503, Retry_After="0")] * 5)
        self.refused("status 503")
        part = [n for n in os.listdir(self.blobs()) if n.endswith(".incomplete")]
        with open(os.path.join(self.blobs(), part[0]), "r+b") as file:
            file.write(b"damaged")
        self.assert_whole(self.fetch())

    def test_a_server_that_ignores_ranges(self):
        self.faults(self.cut(10000), self.send(WEIGHTS, ignore_range=True))
        self.assert_whole(self.fetch(remarks=r".*trying again.*\n"))

    def test_another_version_in_the_middle(self):
        # The tag changed: the server sends all of it, as asked with If-Range; or the rest of the other one, which is not taken.
        self.faults(self.cut(10000, etag='"old"'))
        self.assert_whole(self.fetch(remarks=r".*trying again.*\n"))
        self.assertEqual(len(self.hub.asked("model.safetensors")), 2)

        def rest_of_another(handler):
            self.hub.send(handler, 206, b"x" * (len(WEIGHTS) - 10000), ETag='"new"',
                          Content_Range=f"bytes 10000-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
            return True
        self.home = self.home + "-again"
        self.cache = os.path.join(self.home, "hub")
        self.faults(self.cut(10000, etag='"old"'), rest_of_another)
        self.assert_whole(self.fetch(remarks=r".*trying again.*\n"))

    def test_a_range_that_was_not_asked_for(self):
        self.faults(self.cut(10000), self.send(WEIGHTS, shift=5))
        self.assert_whole(self.fetch(remarks=r".*trying again.*\n"))

    def test_a_stalled_download(self):
        self.faults(stall(4, WEIGHTS, 5000))
        self.assert_whole(self.fetch(remarks=r".*trying again in 1 s\n"))

    def test_a_hub_that_is_busy(self):
        self.faults(status(429, Retry_After="0"), status(503, Retry_After="0"), name="")
        self.faults(status(429, Retry_After="1"))
        self.assert_whole(self.fetch(remarks=r"(.*status 429.*\n|.*status 503.*\n){3}"))

    # What goes wrong and stays so.

    def test_refusals_in_one_line_each(self):
        for fault, *parts in (
                (status(401), "no such model", "HF_TOKEN"),
                (status(403, X_Error_Code="GatedRepo", X_Error_Message="Access to model org/toy is restricted."),
                 "granted access", "restricted", self.hub.endpoint + "/org/toy", "HF_TOKEN"),
                (status(404, X_Error_Code="RepoNotFound"), "no such model", "check the name"),
                (status(418), "status 418"),
                (status(302), "status 302"),
                (status(429, Retry_After="86400"), "too many requests", "wait")):
            self.faults(fault, name="")
            self.refused("org/toy: ", *parts)
        self.faults(*[status(429, Retry_After="0")] * 5, name="")
        self.refused("too many requests", "HF_TOKEN")
        self.faults(status(404, X_Error_Code="EntryNotFound"))
        self.refused("org/toy, model.safetensors: the hub has no such file")
        self.refused("cannot be reached", "HF_ENDPOINT", HF_ENDPOINT="http://127.0.0.1:1")
        self.assert_one_line(self.run_program("fetch", "org/toy", env=self.env(HF_ENDPOINT="ftp://x")), 2, "HF_ENDPOINT")

    def test_answers_that_are_no_listing(self):
        for body in (b"", b"<html>sign in</html>", b"{}", b'{"sha": 1}', b'{"sha": "../x", "siblings": []}',
                     b'{"sha": "%s", "siblings": 1}' % COMMIT.encode()):
            self.faults(lambda handler, body=body: self.hub.send(handler, 200, body) or True, name="")
            self.refused("org/toy: the hub's listing")

    def test_listings_that_lead_elsewhere(self):
        for name in ("../x", "/etc/x", "a\\b", "a/../../x", "", "a//b", "a\nb", "."):
            self.hub.extra = [{"rfilename": name, "size": 0, "blobId": "0" * 40}]
            self.refused("leads elsewhere")
        self.hub.extra = []
        for name, change, part in (("config.json", {"blobId": "../../x"}, "no checksum"),
                                   ("config.json", {"blobId": None}, "no checksum"),
                                   ("config.json", {"size": -1}, "no size"),
                                   ("model.safetensors", {"lfs": {"sha256": "0" * 40, "size": 1}}, "no checksum")):
            self.hub.changed = {name: change}
            self.refused(part)
        self.assertFalse(os.path.exists(self.cache))

    def test_lengths_and_checksums_that_lie(self):
        self.faults(self.send(WEIGHTS + b"x"))
        self.refused("sends 4", "bytes but lists")
        self.hub.changed = {"config.json": {"blobId": "0" * 40}}
        self.refused("config.json", "not the checksum", "0" * 40)
        self.hub.changed = {}
        other = bytes(len(WEIGHTS))
        self.faults(self.send(other))
        self.refused("not the checksum")
        self.assertFalse(os.path.exists(os.path.join(self.cache, "models--org--toy", "refs", "main")))
        self.assert_whole(self.fetch())

    def test_a_disk_that_is_too_small(self):
        self.hub.changed = {"model.safetensors": {"lfs": {"sha256": "1" * 64, "size": 10**18}}}
        self.refused("too full", "1000000.0 TB", "HF_HOME")

    def test_a_folder_that_cannot_be_written(self):
        with open(self.path("a-file"), "w", encoding="ascii") as file:
            file.write("x")
        self.refused("a-file", "HF_HOME", HF_HOME=self.path("a-file/x"))

    def test_only_pickles(self):
        self.hub = self.new_hub({**SMALL, **NOT_WANTED, "pytorch_model.bin": (b"PK", True)})
        self.refused("pytorch_model.bin", "pickle", "never fetched")
        self.assertEqual(self.hub.asked("pytorch_model.bin"), [])
        self.hub = self.new_hub(SMALL)
        self.refused("neither safetensors nor GGUF")

    def test_led_in_circles(self):
        self.faults(*[status(302, Location=f"/org/toy/resolve/{COMMIT}/model.safetensors")] * 20)
        self.refused("more than 10 times")

    def test_interrupted_it_keeps_what_came(self):
        self.faults(stall(30, WEIGHTS, 20000))
        with subprocess.Popen([PROGRAM, "fetch", "org/toy"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment(**self.env(HF_HUB_DOWNLOAD_TIMEOUT="60"))) as process:
            deadline = time.monotonic() + 60
            part = lambda: [n for n in (os.listdir(self.blobs()) if os.path.isdir(self.blobs()) else [])
                            if n.endswith(".incomplete") and os.path.getsize(os.path.join(self.blobs(), n)) == 20000]
            while not part() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"interrupted", err)
        self.assertEqual(len(part()), 1)
        self.hub.requests.clear()
        self.assert_whole(self.fetch())
        self.assertEqual([r[3] for r in self.hub.asked("model.safetensors")], ["bytes=20000-"])

    def test_names_that_are_none(self):
        for name in ("org/", "/toy", "org/to..y", "a/b/c", "org/toy@", "org/toy@../x", "org/toy:x.bin", "-a/b", "smolm2"):
            result = self.run_program("fetch", name, env=self.env()) if not name.startswith("-") else None
            if result:
                self.assert_one_line(result, 1, "no model is called", name)
        self.assertEqual(self.hub.requests, [])
        self.assert_one_line(self.run_program("info", "smolm2"), 1, "did you mean smollm2?")
        self.assert_one_line(self.run_program("fetch", "smolm2"), 1, "did you mean smollm2?")
        self.assert_one_line(self.run_program("info", "nowhere/x.gguf"), 1, "no such file")


if __name__ == "__main__":
    unittest.main()
