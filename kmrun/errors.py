"""The one tree of errors that a user can cause.

    KmrunError                 a sentence, a hint, an exit code
     +- UsageError (2)         the command line asks for something that cannot be
     +- InvalidInput (2)       a file that a person wrote is wrong; carries diagnostics where there is a place
     |   +- UnknownName (2)    a card, model, case or code that does not exist, with the nearest ones
     +- EnvironmentLacks (3)   torch, a driver, a device or a permission is missing
     |   +- OutputLost (3)     standard output or error cannot be written
     +- KernelBroken (1)       the kernel under test does what it must not
     +- Interrupted (130)      Ctrl-C

Anything else that escapes is kmrun's own bug, and keeps its traceback.
"""


class KmrunError(Exception):
    """Base of all user-facing errors.

    Attributes:
        sentence: what is wrong, one line, no trailing full stop needed.
        hint: what to do next; empty when there is nothing useful to say.
        exit_code: the exit status of the process.
    """

    exit_code = 2

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


class UsageError(KmrunError):
    """The command line is wrong."""


class InvalidInput(KmrunError):
    """A file that a person wrote is wrong."""


class UnknownName(InvalidInput):
    """A name that stands for nothing; the hint names the nearest ones."""


class EnvironmentLacks(KmrunError):
    """Something outside kmrun and the suite is missing."""

    exit_code = 3


class OutputLost(EnvironmentLacks):
    """What was to be printed cannot be: the disk is full, the terminal is gone."""


class KernelBroken(KmrunError):
    """The kernel under test does what it must not; a run makes a verdict of that, `exec` has none."""

    exit_code = 1


class Interrupted(KmrunError):
    """The user pressed Ctrl-C."""

    exit_code = 130
