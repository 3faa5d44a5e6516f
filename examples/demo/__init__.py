"""The demonstration, `python -m examples.demo`: TPC-H queries come and go on Spark, with sharing and without."""
