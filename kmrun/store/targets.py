"""Files that a run writes: found writable before anything is measured, then replaced whole or not at all."""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from kmrun.errors import UsageError

_TEMPORARY = ".kmrun-"
_DESCRIPTORS = "/proc/self/fd"


class TargetFile:
    """A file named on the command line, to be written later, as often as need be.

    Only an earlier file of the same kind is ever replaced: a suite or a source file named by mistake is worth
    more than a run.
    """

    def __init__(self, path: Path, option: str, what: str, replaceable: Callable[[bytes], bool]) -> None:
        """Prepare to write `path`.

        Args:
            path: where.
            option: what named it, for messages.
            what: what an earlier file there has to be, such as `a result of kmrun`.
            replaceable: says of an earlier file's content whether it is that; an empty one always is.

        Raises:
            UsageError: the file cannot be written there, or holds something else.
        """
        self._option, self._what, self._replaceable = option, what, replaceable
        try:
            self.path = path.resolve()
            self._probe(path)
        except OSError as error:
            raise self._refusal(path, error) from error
        except RuntimeError as error:  # how pathlib tells of links that go round, until Python 3.13
            raise UsageError(f"{option} {path}: links that lead to themselves") from error

    def replace(self, text: str) -> None:
        """Replace the file's content; a reader sees the old content or the new one, never a part.

        Raises:
            UsageError: the file can no longer be written.
        """
        temporary: Path | None = None
        try:
            handle, temporary = self._nameless()
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fchmod(handle, self._mode())
                os.fsync(handle)
                if temporary is None:
                    temporary = self.path.with_name(f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")
                    # Only with a folder's descriptor, which a whole path makes no use of, does Python follow the link.
                    os.link(f"{_DESCRIPTORS}/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True)
            temporary.replace(self.path)
        except OSError as error:
            raise self._refusal(self.path, error) from error
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)

    def _nameless(self) -> tuple[int, Path | None]:
        """Open a file beside the target: without a name where the system can, so that a kill leaves nothing."""
        if hasattr(os, "O_TMPFILE") and Path(_DESCRIPTORS).is_dir():
            with contextlib.suppress(OSError):
                return os.open(self.path.parent, os.O_TMPFILE | os.O_WRONLY, 0o600), None
        handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.path.parent)
        return handle, Path(name)

    def _probe(self, shown: Path) -> None:
        if self.path.is_dir():
            raise UsageError(f"{self._option} {shown}: is a directory", "name a file in it")
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"{self._option} {shown}: is no regular file")
        if self.path.exists():
            if not os.access(self.path, os.W_OK):
                raise UsageError(f"{self._option} {shown}: the file is read-only")
            content = self.path.read_bytes()
            if content.strip() and not self._replaceable(content):
                hint = "name another file, or take that one away"
                raise UsageError(f"{self._option} {shown}: is there already, and is no {self._what}", hint)
        handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.path.parent)
        os.close(handle)
        Path(temporary).unlink()

    def _mode(self) -> int:
        if self.path.exists():
            return self.path.stat().st_mode & 0o777
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

    def _refusal(self, shown: Path, error: OSError) -> UsageError:
        reason = (error.strerror or str(error)).lower()
        return UsageError(f"{self._option} {shown}: cannot be written: {reason}")
