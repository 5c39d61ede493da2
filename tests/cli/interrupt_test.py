"""Ctrl-C on a terminal: the first one keeps what was done and leaves with 130, the second one stops at once."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from program import PROGRAM, ProgramTest

LONG = "a" * 16000


class Session:
    """The program with a pseudo-terminal as its controlling terminal, 80 columns wide."""

    def __init__(self, test, words, stdout=None):
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([PROGRAM, *words], cwd=test.folder, env=test.environment(TERM="xterm-256color"),
                                        stdin=terminal, stdout=stdout or terminal, stderr=terminal,
                                        preexec_fn=take_terminal)
        os.close(terminal)
        self.seen = b""

    def read_until(self, wanted, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(wanted, self.seen):
            if time.monotonic() > end:
                raise AssertionError(f"no {wanted} in {self.seen[-500:]}")
            if not self.read_some():
                break
        return self.seen

    def read_some(self):
        ready, _, _ = select.select([self.master], [], [], 0.2)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data
        return bool(data)

    def press_ctrl_c(self):
        os.write(self.master, b"\x03")

    def finish(self, seconds=60):
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                self.process.kill()
                raise AssertionError(f"still running: {self.seen[-500:]}")
            self.read_some()
        while self.read_some() and select.select([self.master], [], [], 0.2)[0]:
            pass
        os.close(self.master)
        return self.process.returncode


class CtrlC(ProgramTest):
    def test_generate_keeps_the_text_so_far(self):
        session = Session(self, ["generate", "slow.gguf", "-p", "hello", "-n", "1000000", "--temperature", "1"])
        session.read_until(rb"hello.{20}", 60)
        session.press_ctrl_c()
        self.assertEqual(session.finish(), 130)
        self.assertRegex(session.seen, rb"regard: interrupted[^\n]*kept[^\n]*\n")

    def test_generate_writes_the_document_so_far(self):
        session = Session(self, ["generate", "slow.gguf", "-p", "hello", "-n", "1000000", "--temperature", "1",
                                 "-o", "made.json"])
        time.sleep(2)
        session.press_ctrl_c()
        self.assertEqual(session.finish(), 130)
        with open(self.path("made.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["stopped"], "interrupted")
        self.assertGreater(len(document["generated"]), 0)

    def test_read_stops_soon_and_leaves_nothing(self):
        before = sorted(os.listdir(self.folder))
        with open(self.path("../" + os.path.basename(self.folder) + ".txt"), "w", encoding="utf-8") as file:
            file.write(LONG)
        self.addCleanup(os.remove, file.name)
        session = Session(self, ["read", "slow.gguf", "-f", file.name, "-o", "long.json"])
        session.read_until(rb"left|reading \d+ tokens takes", 60)
        time.sleep(1)
        session.press_ctrl_c()
        start = time.monotonic()
        self.assertEqual(session.finish(), 130)
        self.assertLess(time.monotonic() - start, 20)
        self.assertRegex(session.seen, rb"regard: interrupted")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_the_second_stops_at_once(self):
        session = Session(self, ["read", "slow.gguf", "-p", LONG])
        session.read_until(rb"reading \d+ tokens takes", 60)
        time.sleep(0.5)
        for _ in range(2):
            os.kill(session.process.pid, signal.SIGINT)
            time.sleep(0.05)
        start = time.monotonic()
        self.assertEqual(session.finish(), 130)
        self.assertLess(time.monotonic() - start, 2)

    def test_waiting_for_standard_input_can_be_interrupted(self):
        session = Session(self, ["tokens", "tiny.gguf", "-f", "-"])
        time.sleep(1)
        session.press_ctrl_c()
        self.assertEqual(session.finish(), 130)
        self.assertIn(b"regard: interrupted", session.seen)


class OnATerminal(ProgramTest):
    def test_colours_width_and_progress(self):
        session = Session(self, ["read", "tiny.gguf", "-p", "hello 漢字 " * 12])
        self.assertEqual(session.finish(), 0)
        text = session.seen.decode()
        self.assertIn("\x1b[38;5;", text)  # 256 colours, as TERM says
        for line in re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n"):
            columns = sum(2 if c in "漢字" else 1 for c in line)
            self.assertLessEqual(columns, 80, line)

    def test_quiet_says_nothing_on_standard_error(self):
        with open(self.path("out.txt"), "wb") as out:
            session = Session(self, ["read", "slow.gguf", "-p", "a" * 1500, "--quiet"], stdout=out)
            self.assertEqual(session.finish(120), 0)
        self.assertEqual(session.seen, b"")


if __name__ == "__main__":
    unittest.main()
