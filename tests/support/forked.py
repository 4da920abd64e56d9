"""Commands in processes of their own that need not import torch anew: they are forked from one that has it."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HOST = """
import json, os, sys
import torch
import kmrun.cli.app, kmrun.cli.exec, kmrun.measure.foreground, kmrun.source.suite_plan

# Nothing is computed before a fork: it would hang in OpenMP.
requests, replies = os.fdopen(os.dup(0), closefd=True), os.fdopen(os.dup(1), "w")
for line in requests:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), file=replies, flush=True)
else:
    os._exit(0)
os.close(requests.fileno())
os.close(replies.fileno())
for number, name in enumerate(("/dev/null", request["out"], request["err"])):
    file = os.open(name, os.O_RDWR)
    os.dup2(file, number)
    os.close(file)
os.chdir(request["folder"])
sys.path[0] = request["folder"]  # as of `python -m kmrun`
sys.argv = ["kmrun", *request["words"]]
kmrun.cli.main()
"""


class Forking:
    """Runs command lines of kmrun, one at a time, until it is closed."""

    def __init__(self) -> None:
        self._host = subprocess.Popen(
            [sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `kmrun WORDS` in a folder, without standard input."""
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        with tempfile.NamedTemporaryFile("r+") as out, tempfile.NamedTemporaryFile("r+") as err:
            request = {"folder": str(folder), "words": words, "out": out.name, "err": err.name}
            print(json.dumps(request), file=self._host.stdin, flush=True)
            code = int(self._host.stdout.readline())
            return subprocess.CompletedProcess(["kmrun", *words], code, out.read(), err.read())

    def close(self) -> None:
        """End the process that the others are forked from."""
        self._host.communicate(timeout=60)
