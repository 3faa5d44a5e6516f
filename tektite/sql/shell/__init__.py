"""`tektite sql`: the shell, its prompt and its output.

command  what `tektite sql` does with its options: run the texts given, or read from standard input, or talk
display  an aligned table for people, CSV and JSON for programs
prompt   the interactive side of the shell: a prompt with history and completion, statements over several lines
shell    what it does with each statement and each backslash command, apart from how these are typed in
"""
