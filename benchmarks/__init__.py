"""Benchmarks: every module here that defines NAME, DESCRIPTION and `run(**params) -> Iterator[dict]` is one.

`run` yields one record for each thing it measured, as soon as it is measured. A record holds what tells it from the
others (the runner adds the parameters of `run` that have one value) and whichever of these figures apply: seconds,
updates_per_s, p50_us, p99_us, max_us, rss_mib, peak_mib; cpu_seconds, cpu_p50_us and cpu_p99_us, processor time
instead of elapsed time; `others_cores`, how many cores other processes kept busy meanwhile; and `ccdf`, the
distribution of latencies as pairs (microseconds, share that took at least as long). A module may define
`plot(records, path)`, which draws them into a file.
"""
