"""Ctrl-C once, again and again, at every moment: the process ends with 130, never by the signal."""

import os
import signal
import subprocess
import sys
import time

import pytest

from kmrun.cli.interrupts import ignore_from_now_on, interrupt_once
from kmrun.errors import Interrupted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sends signals")

NUMBERS = (signal.SIGINT, signal.SIGTERM)

SCRIPT = """
import sys, time
from kmrun.cli import app, main

def slow(words):
    try:
        print("here", flush=True)
        time.sleep(30)
    finally:
        {cleaning}
        print("cleaned", flush=True)

app.with_default_command = slow
main()
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_interrupts_while_cleaning_up_do_not_disturb_it(number):
    script = SCRIPT.format(cleaning="time.sleep(0.5)")
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "here\n"
    while child.poll() is None:
        os.kill(child.pid, number)
        time.sleep(0.02)
    out, err = child.communicate()
    assert (child.returncode, out, err) == (130, "cleaned\n", "interrupted\n")


SLOW_TYPER = """
import time
print("importing", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_an_interrupt_while_imports_go_on_is_quiet(tmp_path, number):
    (tmp_path / "typer.py").write_text(SLOW_TYPER)
    child = subprocess.Popen(
        [sys.executable, "-c", "from kmrun.cli import main; main()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "importing\n"
    os.kill(child.pid, number)
    out, err = child.communicate()
    assert (child.returncode, out, err) == (130, "", "")


INTERRUPTED_IMPORT = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            eval("interrupt()")  # CPython remembers one that leaves such a text

def interrupt():
    raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from kmrun.cli import main
main()
"""


@pytest.mark.parametrize(
    "name", ["kmrun.cli.start", "kmrun.cli.interrupts", "kmrun.cli.app", "kmrun.errors", "kmrun.cli.check"]
)
def test_an_interrupt_while_any_module_is_imported_is_quiet(name):
    words = [sys.executable, "-c", INTERRUPTED_IMPORT.format(name=name), "check", "none.yaml"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    told = "interrupted\n" if name == "kmrun.cli.check" else ""  # by then there is somebody to tell it
    assert (done.returncode, done.stdout, done.stderr) == (130, "", told)


def test_the_exit_code_is_the_one_of_the_error():
    assert Interrupted.exit_code == 130


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_interrupts_and_the_second_does_nothing(number):
    interrupt_once()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    for again in NUMBERS:
        signal.raise_signal(again)


def test_a_settled_exit_code_is_not_changed():
    interrupt_once()
    ignore_from_now_on()
    for number in NUMBERS:
        signal.raise_signal(number)


def test_what_others_do_with_a_signal_stays():
    def debugger(number, frame):
        raise AssertionError("not to be called")

    signal.signal(signal.SIGINT, debugger)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt_once()
    ignore_from_now_on()
    assert signal.getsignal(signal.SIGINT) is debugger
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
