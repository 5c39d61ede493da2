"""`--chat`: the model's own template, run as transformers runs it, in every verb that takes a text."""

import os
import subprocess
import time
import unittest

from program import MAKER, PROGRAM, ProgramTest

BAD_INPUT, USAGE = 1, 2
CHAT = "chat.gguf"


class Chat(ProgramTest):
    def model(self, template):
        subprocess.run([MAKER, self.folder, "own.gguf"], input=template.encode(), check=True)
        return "own.gguf"

    def rendered(self, model, *words, **more):
        document = self.document("tokens", model, "--chat", *words, **more)
        return b"".join(bytes.fromhex(token["bytes"]) for token in document["tokens"]).decode()

    def test_a_template_writes_roles_and_special_tokens(self):
        model = self.model("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] | trim }}{{ eos_token }}"
                           "{% endfor %}{{ nobody }}{% if add_generation_prompt %}[assistant]{% endif %}")
        end = "<|endoftext|>"  # begins and ends texts of this model
        self.assertEqual(self.rendered(model, "-p", "  hello 漢字 😀! "), f"{end}[user] hello 漢字 😀!{end}[assistant]")
        self.assertEqual(self.rendered(model, "-p", "a", "--system", "be 短"),
                         f"{end}[system] be 短{end}[user] a{end}[assistant]")
        # Written out and read as the one token each; nothing is put round the text a second time.
        texts = [token["text"] for token in self.document("tokens", model, "--chat", "-p", "a")["tokens"]]
        self.assertEqual((texts[0], texts.count(end)), (end, 2))

    def test_lines_of_blocks_leave_no_blanks(self):
        self.assertEqual(self.rendered(self.model("{% for m in messages %}\n  {% if true %}\n{{ m.content }}\n  {% endif %}\n"
                                                  "{% endfor %}\nend\n"), "-p", "a"), "a\nend")

    def test_what_templates_of_models_use(self):
        for template, expected in (
                ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% elif i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "013"),
                ("{% generation %}{% set x = 1 %}{{ messages[0].content }}{% endgeneration %}{{ x is defined }}", "<a> 汉False"),
                ("{{ messages[0] | tojson }}", '{"role": "user", "content": "<a> 汉"}'),
                ("{{ {'b': [1], 'a': none} | tojson(indent=1) }}", '{\n "b": [\n  1\n ],\n "a": null\n}'),
                ("{{ strftime_now('%Y') }}", time.strftime("%Y")),
                ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
                ("{{ messages[0].content.split(' ')[-1].upper() }}{{ tools is none }}", "汉True"),
                ("{%- macro say(x) -%}({{ x }}){%- endmacro -%}{{ say(messages | length) }}", "(1)")):
            with self.subTest(template=template):
                self.assertEqual(self.rendered(self.model(template), "-p", "<a> 汉"), expected)

    def test_every_verb_reads_the_same_tokens(self):
        words = [CHAT, "-p", "hello", "--chat", "--system", "be brief"]
        ids = [token["id"] for token in self.document("tokens", *words)["tokens"]]
        for verb, *more in (["logits"], ["read"], ["generate", "-n", "1"], ["why"], ["patch", "--edit", "zero z layer=0"],
                            ["sweep", "--edit", "zero z", "--each", "layer"]):
            with self.subTest(verb=verb):
                self.assertEqual([token["id"] for token in self.document(verb, *words, *more)["tokens"]], ids)

    def test_runs_go_through_it_too(self):
        words = ["patch", CHAT, "-p", "hello", "--chat", "--edit", "patch resid_post from=contrast layer=-1 row=-1"]
        same = self.document(*words, "--contrast", "hello")
        other = self.document(*words, "--contrast", "hellq")
        self.assertEqual((same["effect"], same["receipts"][0]["changed"]), (0, 0))
        self.assertNotEqual(other["effect"], 0)

    def test_what_a_template_refuses_is_said(self):
        for template, part, *more in (
                ("{{ raise_exception('System role not supported') }}", "System role not supported", "--system", "x"),
                ("{% if %}", "template"), ("{{ messages[7].content.x }}", "has no element 7"), ("{{ 1 / 0 }}", "zero"),
                ("{{ 'a' * 9999999999 }}", "MemoryError"), ("{{ ''.__class__.__mro__ }}", "unsafe"),
                ("{% include '/etc/passwd' %}", "loader"), ("{{ messages.append(1) }}", "unsafe")):
            with self.subTest(template=template):
                self.assert_one_line(self.run_program("tokens", self.model(template), "-p", "a", "--chat", *more), BAD_INPUT, part)

    def test_what_a_template_makes_is_bounded(self):
        for template in ("{{ '%40000000d' | format(1) }}", "{{ raise_exception('a' * 60000000) }}"):
            with self.subTest(template=template):
                result = self.run_program("tokens", self.model(template), "-p", "a", "--chat")
                self.assert_one_line(result, BAD_INPUT, "template cannot be used")
                self.assertLess(len(result.err), 1000)
        self.assert_one_line(self.run_program("tokens", self.model("{{ raise_exception('why\n  more') }}"), "-p", "a", "--chat"),
                             BAD_INPUT, "cannot be used: why more,")

    def test_limits_that_are_there_already(self):
        with open(self.path("limited"), "w", encoding="utf-8") as file:
            file.write(f'ulimit -t 15; ulimit -c 0; exec {PROGRAM} tokens {CHAT} -p a --chat --json\n')
        result = subprocess.run(["bash", "limited"], cwd=self.folder, env=self.environment(), capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no Python of the system's")
    def test_a_python_that_does_not_run_is_passed_over(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/python3"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho no version is set >&2\nexit 127\n")
        os.chmod(self.path("bin/python3"), 0o755)
        path = {"PATH": self.path("bin") + ":" + os.environ["PATH"]}
        result = self.run_program("tokens", CHAT, "-p", "a", "--chat", env=path)
        self.assertEqual((result.status, result.err), (0, ""))

    def test_modules_of_the_current_folder_are_not_python_s(self):
        with open(self.path("jinja2.py"), "w", encoding="utf-8") as file:
            file.write("open('taken', 'w')\n")
        self.rendered(CHAT, "-p", "a")
        self.rendered(CHAT, "-p", "a", env={"PYTHONPATH": ":/nowhere"})  # an empty place is the current folder
        os.remove(self.path("jinja2.py"))
        self.assertFalse(os.path.exists(self.path("taken")))

    def test_no_files_are_left(self):
        temporary = self.path("temporary")
        os.mkdir(temporary)
        self.rendered(CHAT, "-p", "a", env={"TMPDIR": temporary})
        self.run_program("tokens", "other-chat.gguf", "-p", "a", "--chat", env={"TMPDIR": temporary})
        self.assertEqual(os.listdir(temporary), [])

    def test_words_that_do_not_go_together(self):
        for verb in ("tokens", "why"):
            self.assert_one_line(self.run_program(verb, CHAT, "--ids", "1", "--chat"), USAGE, "--chat")
            self.assert_one_line(self.run_program(verb, CHAT, "-p", "a", "--system", "x"), USAGE, "--chat")
            self.assert_one_line(self.run_program(verb, "tiny.gguf", "-p", "a", "--chat"), BAD_INPUT, "no chat template")


if __name__ == "__main__":
    unittest.main()
