"""The physical dataflow: scopes, the agenda that schedules them, and the operators."""
