"""The command `python -m benchmarks NAME ...`: shows each record as it arrives, beside what other systems reach.

Each benchmark runs in a process of its own when several are asked for, so that the memory one leaves behind is not
counted for the next.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks
from benchmarks.anchors import comparisons
from benchmarks.table import Table

OUT = Path("out")


def discover() -> dict[str, ModuleType]:
    """The benchmarks by name: the modules of this package that define NAME and `run`."""
    found = {}
    for module in pkgutil.iter_modules(benchmarks.__path__, prefix="benchmarks."):
        if not module.name.endswith("__main__"):
            candidate = importlib.import_module(module.name)
            if hasattr(candidate, "NAME") and hasattr(candidate, "run"):
                found[candidate.NAME] = candidate
    return found


def parse_parameter(text: str) -> tuple[str, Any]:
    """`key=value`; a value with commas is a list, and what looks like a number is one.

    >>> parse_parameter("sizes=1,1_000"), parse_parameter("share=0.5"), parse_parameter("executor=threads")
    (('sizes', [1, 1000]), ('share', 0.5), ('executor', 'threads'))
    >>> parse_parameter("check=false")
    ('check', False)
    """
    key, equals, value = text.partition("=")
    if not equals:
        sys.exit(f"--param {text}: not of the form key=value")
    if "," in value:
        return key, [parse_value(part) for part in value.split(",") if part]
    return key, parse_value(value)


def parse_value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def run(module: ModuleType, parameters: dict[str, Any], json_path: Path | None) -> None:
    """Run one benchmark in this process."""
    accepted = inspect.signature(module.run).parameters
    unknown = sorted(set(parameters) - set(accepted))
    if unknown:
        sys.exit(f"benchmark {module.NAME} has no parameter {', '.join(unknown)}; it has {', '.join(accepted)}")
    # A parameter with several values is a sweep: the records say which value they belong to.
    sweeps = {key for key, parameter in accepted.items() if isinstance(parameter.default, (list, tuple))}
    parameters = {
        key: [value] if key in sweeps and not isinstance(value, list) else value for key, value in parameters.items()
    }
    fixed = {key: parameters.get(key, parameter.default) for key, parameter in accepted.items() if key not in sweeps}
    print(f"{module.NAME}: {module.DESCRIPTION}", flush=True)
    table, records = Table(), []
    for measured in module.run(**parameters):
        record = {"benchmark": module.NAME, **fixed, **measured}
        records.append(record)
        if json_path:
            with json_path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        # Distributions and lists are for the file and the plot.
        hidden = ("benchmark", "ccdf", "timeline")
        table.show({key: v for key, v in record.items() if key not in hidden and not isinstance(v, list)})
        for comparison in comparisons(record):
            print(f"    {comparison}", flush=True)
    if hasattr(module, "plot"):
        OUT.mkdir(exist_ok=True)
        path = OUT / f"{module.NAME}.png"
        module.plot(records, path)
        print(f"plotted to {path}")


def main() -> None:
    known = discover()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run benchmarks; all of them if none is named."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="say what there is, and what parameters it takes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one JSON object a line to FILE")
    parser.add_argument("--append", action="store_true", help="add to FILE instead of replacing it")
    parser.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of run()")
    options = parser.parse_args()
    if options.list:
        for name, module in known.items():
            print(f"{name}: {module.DESCRIPTION}")
            print("   ", *(f"{key}={value.default}" for key, value in inspect.signature(module.run).parameters.items()))
        return
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known)}")
    if options.json and not options.append:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("")
    names = options.names or list(known)
    if len(names) == 1:
        run(known[names[0]], dict(map(parse_parameter, options.param)), options.json)
        return
    for name in names:
        command = [sys.executable, "-m", "benchmarks", name]
        command += ["--json", str(options.json), "--append"] if options.json else []
        command += [part for text in options.param for part in ("--param", text)]
        done = subprocess.run(command)
        if done.returncode:
            sys.exit(done.returncode)
