"""Store: atomic, durable files on a file system or in an object store.

Promises, on which everything above relies:

* `write` makes a whole file appear under its name, or nothing. When it returns, the file survives a power cut.
* `create` does the same. Of all processes that create one name, exactly one succeeds.
* A name is a relative path with `/`. An existing file never changes.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from tektite.errors import ConflictError, IncorrectError, NotFoundError, UnsupportedError

if TYPE_CHECKING:  # it takes 8 MiB, and most engines have no file system of Arrow's
    import pyarrow.fs as arrow_fs

if sys.platform != "win32":
    import fcntl

TEMPORARY = ".writing-"
"""The prefix of files that are being written. Those left after a crash are garbage."""

FileParts = Sequence[bytes | memoryview]
Create = Callable[[str, bytes], bool]


class Lock:
    """A claim on a folder. It ends with this process, even if the process has forked others."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        _LOCKS.add(self)

    def release(self) -> None:
        """Release the claim; doing so twice is harmless."""
        if sys.platform != "win32" and not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def forget(self) -> None:
        """In a forked process: leave the claim to the parent."""
        self._file.close()


_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()


def _forget_locks() -> None:
    for lock in list(_LOCKS):
        lock.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_locks)


class Store(Protocol):
    """A folder of files. `url` names it in errors."""

    url: str

    def read(self, name: str) -> bytes:
        """The whole content of a file."""

    def write(self, name: str, parts: FileParts, durable: bool = True) -> None:
        """Write a whole file; durable unless told otherwise. It may replace an existing file."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a whole, durable file unless the name exists; returns whether this call did it."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Names (within the folder) and lengths of its files, including leftovers of writing."""

    def top(self) -> list[str]:
        """The names of everything directly in the store, including folders."""

    def ages(self, folder: str) -> dict[str, float]:
        """The time at which each file of a folder was written, in seconds since 1970."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; skip names that do not exist."""

    def local(self, name: str) -> Path | None:
        """The file as a local path that can be mapped, if the store is a file system."""

    def lock(self) -> Lock | None:
        """Claim the store for one writer until it is released; None where that is not possible."""


class PosixStore:
    """A folder of a local or shared file system. `create` uses link(2), which fails if the name exists.

    >>> import tempfile
    >>> store = PosixStore(tempfile.mkdtemp())
    >>> store.create("manifest/1", b"ours"), store.create("manifest/1", b"theirs"), store.read("manifest/1")
    (True, False, b'ours')
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).absolute()
        self.url = str(self.root)

    def read(self, name: str) -> bytes:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"storage {self.url}: there is no file {name}") from None

    def write(self, name: str, parts: FileParts, durable: bool = True) -> None:
        target = self._folder_of(name)
        temporary = self._temporary(target, parts, durable)
        try:
            self.rename(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            self.sync_folder(target.parent)

    def create(self, name: str, data: bytes) -> bool:
        target = self._folder_of(name)
        temporary = self._temporary(target, [data], durable=True)
        try:
            self.link(temporary, target)
            made = True
        except FileExistsError:
            made = False
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise UnsupportedError(
                    f"storage {self.url}: the file system has no hard links, by which exactly one engine can create a "
                    f"version ({error.strerror}): choose a folder on another one"
                ) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)
        self.sync_folder(target.parent)  # in either case: an earlier attempt of ours may have failed here
        return made

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: status.st_size for name, status in self._entries(folder).items()}

    def top(self) -> list[str]:
        return os.listdir(self.root) if self.root.is_dir() else []

    def ages(self, folder: str) -> dict[str, float]:
        return {name: status.st_mtime for name, status in self._entries(folder).items()}

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self.root / name).unlink(missing_ok=True)

    def local(self, name: str) -> Path | None:
        return self.root / name

    def lock(self) -> Lock | None:
        if sys.platform == "win32":
            return None
        self.root.mkdir(parents=True, exist_ok=True)
        file = (self.root / "lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise ConflictError(
                    f"storage {self.url} is in use by {holder}: close that engine first, or choose another path"
                ) from None
            return None  # a file system without locks: only the manifest decides
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        return Lock(file)

    # The single steps of writing: tests stop a process, or let the disk fill up, at each of them.

    def put(self, file: IO[bytes], part: bytes | memoryview) -> None:
        """Write a part of a file."""
        file.write(part)

    def sync(self, file: IO[bytes]) -> None:
        """Have a file's content reach the disk."""
        file.flush()
        os.fsync(file.fileno())

    def rename(self, temporary: Path, target: Path) -> None:
        """Give a finished file its name."""
        os.rename(temporary, target)

    def link(self, temporary: Path, target: Path) -> None:
        """Give a finished file its name, unless the name is taken."""
        os.link(temporary, target)

    def sync_folder(self, folder: Path) -> None:
        """Have the names of a folder reach the disk."""
        if sys.platform == "win32":
            return  # the file system does that by itself
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _temporary(self, target: Path, parts: FileParts, durable: bool) -> Path:
        temporary = target.parent / f"{TEMPORARY}{uuid4().hex}"
        try:
            with temporary.open("xb") as file:
                for part in parts:
                    self.put(file, part)
                if durable:
                    self.sync(file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _folder_of(self, name: str) -> Path:
        target = self.root / name
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            self.sync_folder(target.parent.parent)
        return target

    def _entries(self, folder: str) -> dict[str, os.stat_result]:
        found: dict[str, os.stat_result] = {}
        with suppress(FileNotFoundError), os.scandir(self.root / folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    if entry.is_file(follow_symlinks=False):
                        found[entry.name] = entry.stat()
        return found

    def __reduce__(self) -> tuple[type[PosixStore], tuple[str]]:
        return type(self), (str(self.root),)


class ObjectStore:
    """A folder of anything that `pyarrow.fs` reaches. An object appears as a whole when its stream is closed.

    `create` writes an object only if the name does not exist, and returns whether it did. Arrow's own file systems have no
    such call. Those of fsspec do; for others, pass one.
    """

    def __init__(self, filesystem: arrow_fs.FileSystem, root: str, create: Create | None = None) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.url = f"{filesystem.type_name}:{self.root}"
        self._create = create or _fsspec_create(filesystem)

    def read(self, name: str) -> bytes:
        try:
            with self.filesystem.open_input_stream(f"{self.root}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            raise NotFoundError(f"storage {self.url}: there is no object {name}") from None

    def write(self, name: str, parts: FileParts, durable: bool = True) -> None:
        self._make_folder(name)
        with self.filesystem.open_output_stream(f"{self.root}/{name}", compression=None) as stream:
            for part in parts:
                stream.write(pa.py_buffer(part))

    def create(self, name: str, data: bytes) -> bool:
        if self._create is None:
            raise UnsupportedError(
                f"storage {self.url}: Arrow's {self.filesystem.type_name} file system cannot create an object only if it "
                "is absent, which keeps two engines from writing over each other. Give an fsspec file system (such as "
                "s3fs), Storage(..., create_if_absent=function), or a path on a shared file system"
            )
        self._make_folder(name)
        return self._create(f"{self.root}/{name}", data)

    def sizes(self, folder: str) -> dict[str, int]:
        return {info.base_name: info.size or 0 for info in self._infos(folder)}

    def top(self) -> list[str]:
        return [info.base_name for info in self._below(self.root)]

    def ages(self, folder: str) -> dict[str, float]:
        return {info.base_name: (info.mtime_ns or 0) / 1e9 for info in self._infos(folder)}

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self.filesystem.delete_file(f"{self.root}/{name}")
            except FileNotFoundError:
                continue

    def local(self, name: str) -> Path | None:
        return None

    def lock(self) -> Lock | None:
        return None

    def _make_folder(self, name: str) -> None:
        folder = f"{self.root}/{name}".rpartition("/")[0]
        self.filesystem.create_dir(folder, recursive=True)

    def _infos(self, folder: str) -> list[arrow_fs.FileInfo]:
        return [info for info in self._below(f"{self.root}/{folder}") if info.is_file]

    def _below(self, folder: str) -> list[arrow_fs.FileInfo]:
        from pyarrow.fs import FileSelector

        return self.filesystem.get_file_info(FileSelector(folder, allow_not_found=True))


def _fsspec_create(filesystem: arrow_fs.FileSystem) -> Create | None:
    """The function by which an fsspec file system creates an object that must not exist, if it has one."""
    handler = getattr(filesystem, "handler", None)
    inner: Any = getattr(handler, "fs", None)
    if inner is None or not hasattr(inner, "pipe_file"):
        return None

    def create(path: str, data: bytes) -> bool:
        try:
            inner.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True

    return create


_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+://")


def open_store(
    where: str | Path | Store, filesystem: arrow_fs.FileSystem | None = None, create: Create | None = None
) -> Store:
    """The store at a path, at a URL that `pyarrow.fs` knows (s3://, gs://, hdfs://, file://), or below a file system's
    root.

    >>> open_store("s4://bucket/engine")
    Traceback (most recent call last):
    tektite.errors.IncorrectError: storage 's4://bucket/engine': Unrecognized filesystem type in URI: s4://bucket/engine
    """
    if not isinstance(where, str | Path):
        return where
    path = str(where)
    if not path:
        raise IncorrectError("storage needs the path of a folder, not an empty text")
    if re.match("file:/(?!/)", path):  # Hadoop, and so Spark's catalog, writes a folder's URL in this form
        path = path.removeprefix("file:")
    if filesystem is None and not _SCHEME.match(path):
        return _local(path)
    import pyarrow.fs as arrow_fs

    if filesystem is None:
        try:
            filesystem, path = arrow_fs.FileSystem.from_uri(path)
        except (ValueError, pa.ArrowInvalid) as error:
            raise IncorrectError(f"storage {str(where)!r}: {error}") from None
    while isinstance(filesystem, arrow_fs.SubTreeFileSystem):
        path, filesystem = f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}", filesystem.base_fs
    if isinstance(filesystem, arrow_fs.LocalFileSystem):
        return _local(path)
    return ObjectStore(filesystem, path, create)


def _local(path: str) -> Store:
    """The store in a folder of this machine."""
    if Path(path).is_file():
        raise IncorrectError(f"storage {path!r} is a file: give the path of a folder")
    return PosixStore(path)
