"""Sources and sinks that statements make, and a server runs: files, folders, HTTP, streams of Spark.

connector      what sources and sinks have in common: a name, a state, a task
connectors     all of a server: made, dropped, shown, started again
file_reader    reads files from where they were read to: CSV, JSON, Parquet
sinks          writes the changes of a relation to a file, or sends them to an address
sources        reads files and folders into a table, and takes what clients push
spark_streams  reads streams of the server's Spark session into a table
"""
