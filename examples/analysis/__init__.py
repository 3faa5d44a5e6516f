"""Program analysis of real code, `python -m examples.analysis`: facts extracted from programs, analyses in Datalog, kept up to date
while the code changes.
"""
