"""`tektite sql`: the shell, its prompt and its output.

command  the command `tektite sql` and its options
display  tables for people, CSV and JSON for programs
prompt   the interactive prompt: history, completion, multi-line statements
shell    runs statements and backslash commands
"""
