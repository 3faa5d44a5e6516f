"""What Tektite keeps, as a Spark data source. Spark finds this module by its name, wherever it is installed.

    spark.read.format("tektite").option("path", storage).option("view", "revenue").load()
    spark.readStream.format("tektite").option("path", storage).option("view", "revenue").option("changes", "true").load()

The first is a snapshot: of the newest version, or of `version`. The second are its changes, with the columns `time` and
`diff` behind the view's own; offsets are versions of the storage's manifest, and `startingVersion` is 0 (the contents first,
then what changes; the default), a version, or "latest". With `changes`, `spark.read` gives the changes behind
`startingVersion` up to `version`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructType

if TYPE_CHECKING:
    from tektite.spark.stored import StorageReader
    from tektite.storage.leases import Lease

__all__ = ["DefaultSource"]

LEASE_SECONDS = 86400.0
OPTIONS = ("path", "view", "version", "changes", "startingVersion", "leaseSeconds")


class Shard(InputPartition):
    """One shard's share, between two versions or at the second of them."""

    def __init__(self, number: int, after: int, upto: int) -> None:
        super().__init__(number)
        self.number = number
        self.after = after
        self.upto = upto


class Options:
    """What a user asked for."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from tektite.errors import IncorrectError, UnsupportedError

        if "provider" in options:  # what Spark's catalog says of a table that is being made
            raise UnsupportedError(
                "data source tektite: CREATE TABLE ... USING tektite cannot be: Spark keeps a table's options but does not give "
                "them to a data source in Python when the table is read. CREATE TEMPORARY VIEW ... USING tektite OPTIONS (path "
                "'...', view '...') can"
            )
        known = {name.lower() for name in OPTIONS}
        for name in options:
            if name.lower() not in known:
                raise IncorrectError(f"data source tektite: no option {name!r}; the options are {', '.join(OPTIONS)}")
        for name in ("path", "view"):
            if not options.get(name):
                raise IncorrectError(f"data source tektite: the option {name!r} is missing, .option({name!r}, ...)")
        self.path = options["path"]
        self.view = options["view"]
        self.version = _number(options, "version")
        changes = str(options.get("changes", "false")).lower()
        if changes not in ("true", "false"):
            raise IncorrectError(f"data source tektite: the option 'changes' is true or false, not {changes!r}")
        self.changes = changes == "true"
        self.from_latest = str(options.get("startingVersion", "")).lower() == "latest"
        self.start = 0 if self.from_latest else _number(options, "startingVersion") or 0
        self.lease = _seconds(options)
        if self.changes and self.version is not None and self.start > self.version:
            raise IncorrectError(
                f"data source tektite: changes begin behind version {self.start}, which is later than version {self.version}"
            )


def _number(options: MutableMapping[str, str], name: str) -> int | None:
    from tektite.errors import IncorrectError

    text = options.get(name)
    if text is None:
        return None
    if not str(text).isdigit():
        raise IncorrectError(f"data source tektite: the option {name!r} is the number of a version, not {text!r}")
    return int(text)


def _seconds(options: MutableMapping[str, str]) -> float:
    from tektite.errors import IncorrectError

    text = options.get("leaseSeconds", LEASE_SECONDS)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise IncorrectError(f"data source tektite: the option 'leaseSeconds' is a number of seconds, not {text!r}")
    return found


class DefaultSource(DataSource):
    """The data source `tektite`."""

    @classmethod
    def name(cls) -> str:
        return "tektite"

    def schema(self) -> StructType:
        from tektite.errors import IncorrectError
        from tektite.spark.stored import open_stored
        from tektite.spark.view_frames import spark_schema

        options = Options(self.options)
        schema = spark_schema(open_stored(options.path).collection(options.view).schema)
        if options.changes:
            taken = [name for name in ("time", "diff") if name in schema.names]
            if taken:
                raise IncorrectError(
                    f"data source tektite: {options.view!r} has a column {taken[0]!r} of its own, beside which changes cannot "
                    "have theirs: give it another name in the view"
                )
            schema = schema.add("time", LongType()).add("diff", LongType())
        return schema

    def _checked(self, schema: StructType) -> StructType:
        """The columns that were asked for, if they are those that are there."""
        from tektite.errors import IncorrectError

        mine = self.schema()
        if [(field.name, field.dataType) for field in schema] != [(field.name, field.dataType) for field in mine]:
            raise IncorrectError(
                f"data source tektite: asked for {schema.simpleString()}, found {mine.simpleString()}: leave .schema() out "
                "and select columns"
            )
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(Options(self.options), self._checked(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from tektite.errors import IncorrectError

        options = Options(self.options)
        if not options.changes:
            raise IncorrectError(
                "data source tektite: a stream tells changes, which have a time and a diff: add "
                '.option("changes", "true")'
            )
        if options.version is not None:
            raise IncorrectError("data source tektite: a stream has no last version: leave the option 'version' out")
        return StreamReader(options, self._checked(schema))


class _Both:
    """What reading snapshots and reading changes share. Travels to the executors, so it holds plain values."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._lease: Lease | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lease": None}

    def opened(self) -> StorageReader:
        from tektite.spark.stored import open_stored

        return open_stored(self.options.path)

    def hold(self, stored: StorageReader, version: int) -> None:
        """Keep the files of a version from being deleted, until a later one is held or the lease ends by itself."""
        from tektite.storage.leases import Lease

        before, self._lease = self._lease, Lease(stored.store, version, self.options.lease)
        if before is not None:
            before.release()

    def changed(self, shard: Shard) -> Iterator[pa.RecordBatch]:
        from tektite.spark.stored import batches_of

        stored = self.opened()
        state = stored.state(shard.upto)
        for words in stored.changes(self.options.view, shard.number, shard.after, shard.upto):
            collection = stored.collection(self.options.view, state)
            beside = {"time": words[-2], "diff": words[-1]}
            yield from batches_of(stored.decode(collection, words[:-2], state, beside), self.arrow)


class Reader(_Both, DataSourceReader):
    """Reads a snapshot, or the changes between two versions."""

    def partitions(self) -> Sequence[InputPartition]:
        stored = self.opened()
        state = stored.state(self.options.version)
        stored.collection(self.options.view, state)
        self.hold(stored, self.options.start if self.options.changes and self.options.start else state.version)
        shards = stored.shards(self.options.start, state.version) if self.options.changes else state.shards
        return [Shard(shard, self.options.start, state.version) for shard in range(shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Shard)
        return self.changed(partition) if self.options.changes else self.rows(partition)

    def rows(self, shard: Shard) -> Iterator[pa.RecordBatch]:
        import numpy as np

        from tektite.errors import IncorrectError
        from tektite.spark.stored import batches_of

        stored = self.opened()
        words, _ = stored.snapshot(self.options.view, shard.number, shard.upto)
        counts = words[-1]
        if len(counts) and counts.min() < 0:
            raise IncorrectError(
                f"view {self.options.view!r} holds a row with a negative multiplicity: read its changes"
            )
        state = stored.state(shard.upto)
        rows = np.repeat(words[:-2], counts, axis=1) if len(counts) and counts.max() > 1 else words[:-2]
        table = stored.decode(stored.collection(self.options.view, state), np.ascontiguousarray(rows), state, {})
        return batches_of(table, self.arrow)


class StreamReader(_Both, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads changes as they are committed."""

    last: int | None = None

    def initialOffset(self) -> dict[str, int]:
        stored = self.opened()
        version = stored.manifest.state.version if self.options.from_latest else self.options.start
        if version:
            self.hold(stored, version)
        return {"version": version}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self.opened().manifest.state.version

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        stored = self.opened()
        if not start["version"]:
            version = stored.manifest.state.version
        else:
            version = stored.touched(self.options.view, start["version"]) or start["version"]
        return {"version": version if self.last is None else max(min(version, self.last), start["version"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        stored = self.opened()
        self.hold(stored, start["version"] or end["version"])
        shards = stored.shards(start["version"], end["version"])
        return [Shard(shard, start["version"], end["version"]) for shard in range(shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Shard)
        return self.changed(partition)

    def commit(self, end: dict[str, int]) -> None:
        self.hold(self.opened(), end["version"])

    def stop(self) -> None:
        """The lease stays until it ends by itself: the stream may be started again."""
