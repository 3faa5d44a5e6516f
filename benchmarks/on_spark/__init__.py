"""What `benchmarks/spark.py` measures, a module for each row of its table: ours, and what Spark alone takes for the same."""
