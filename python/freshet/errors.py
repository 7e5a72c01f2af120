"""What can go wrong, as exceptions: each also is the built-in one that stands for the same."""
import logging


class Error(Exception):
    """Anything that freshet refuses or fails at; the text says what was found, where, and what to do."""


class InvalidError(Error, ValueError):
    """What was asked for makes no sense: an option, a combination."""


class BadInputError(Error, ValueError):
    """The data is malformed; file, line and column, or the row, are in the text."""


class NotFoundError(Error, LookupError):
    """A file, column, key or model that is not there."""


class IoError(Error, OSError):
    """The operating system refused: disk full, permission, broken pipe."""


class CorruptError(Error, ValueError):
    """A file of ours is damaged, truncated or of another version."""


class BusyError(Error, RuntimeError):
    """Another process holds it."""


class TimeoutError(Error, TimeoutError):  # noqa: A001 - it is one
    """A deadline passed."""


class PeerLostError(Error, ConnectionError):
    """Another worker is gone."""


class DivergedError(Error, ArithmeticError):
    """The model's numbers are no longer finite."""


class StoppedError(Error, RuntimeError):
    """Somebody asked us to stop."""


_BY_CODE = {
    "invalid": InvalidError,
    "bad-input": BadInputError,
    "not-found": NotFoundError,
    "io": IoError,
    "corrupt": CorruptError,
    "busy": BusyError,
    "timeout": TimeoutError,
    "peer-lost": PeerLostError,
    "diverged": DivergedError,
    "stopped": StoppedError,
}


def of_code(code, text):
    """The exception for an error of the native module."""
    return _BY_CODE.get(code, Error)(text)


def code_of(problem):
    """Its inverse; what is none of ours is the data's fault."""
    return next((code for code, kind in _BY_CODE.items() if type(problem) is kind), "bad-input")


def log(line):
    """One line of the native module's log."""
    logging.getLogger("freshet").warning(line)
