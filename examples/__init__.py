"""Programs that show what Tektite does; `python -m examples.NAME` runs one."""
