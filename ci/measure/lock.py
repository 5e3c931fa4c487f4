"""One run at a time on a GPU: a lock by its UUID, and no stranger at work on it."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci.measure.errors import SetupError
from ci.measure.nvml import GpuWatch

_FOR_ALL = 0o666
"""Every user must be able to take the lock."""


@contextmanager
def exclusive_gpu(uuid: str, watch: GpuWatch) -> Iterator[None]:
    """Hold a GPU for the time of a run.

    The system lets go of the lock when this process ends, however it ends.

    Args:
        uuid: ``GPU-`` and 36 characters.
        watch: The same GPU as its management library shows it.

    Raises:
        SetupError: Another run holds it, or another process computes on it.
    """
    with _locked(lock_folder() / f"flopwatch-{uuid}.lock", uuid):
        strangers = watch.compute_processes() or ()
        if strangers:
            named = ", ".join(str(pid) for pid in strangers)
            msg = f"{uuid} is busy: process {named} computes on it (wait for it, or end it)"
            raise SetupError(msg)
        yield


@contextmanager
def _locked(path: Path, uuid: str) -> Iterator[None]:
    """Hold the lock of a file, which tells others the id of this process."""
    # Opened without truncating it: until the lock is ours the file tells who has it.
    handle = os.open(path, os.O_RDWR | os.O_CREAT, _FOR_ALL)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            msg = (
                f"{uuid} is in use by another run of flopwatch, process {holder} "
                f"(wait for it, or end it; the lock is {path})"
            )
            raise SetupError(msg) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def lock_folder() -> Path:
    """Return the folder for locks: the system's, else the user's, else that of temporary files."""
    named = ("/var/lock", os.environ.get("XDG_RUNTIME_DIR", ""))
    folders = [Path(name) for name in named if name]
    usable = (folder for folder in folders if folder.is_dir() and os.access(folder, os.W_OK))
    return next(usable, Path(tempfile.gettempdir()))
