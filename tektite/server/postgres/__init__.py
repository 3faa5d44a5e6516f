"""PostgreSQL's protocol, version 3.

client_texts  statements of drivers in a simpler form
commands      statements about the session, recognised by their words
connection    one client's connection: bytes in, bytes out
copy_in       parses what COPY FROM STDIN gets: text, CSV, binary
copy_options  the options of COPY
copy_out      rows as COPY TO STDOUT sends them
copy_session  runs COPY between a client and the engine
cursors       DECLARE, FETCH and CLOSE
extended      simple queries, and Parse, Bind, Describe, Execute, Sync
messages      frames and messages as bytes
nested_types  arrays, records, intervals, bytes and moments as text and binary
portals       prepared statements and portals
rows          results as messages
run_commands  runs the commands
sqlstates     errors as PostgreSQL's clients expect them
startup       TLS, cancel requests, the startup packet, authentication
text_columns  columns of a result as texts
types         our types as PostgreSQL's, and values as text and binary
waits         how handling a message may end
"""
