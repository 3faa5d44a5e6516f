"""PostgreSQL's protocol, version 3.

commands      statements about the session, recognised by their words
connection    one client's connection: bytes in, bytes out
extended      simple queries, and Parse, Bind, Describe, Execute, Sync
messages      frames and messages as bytes
portals       prepared statements and portals
rows          results as messages
run_commands  runs the commands
settings      the parameters of a session
sqlstates     errors as PostgreSQL's clients expect them
startup       TLS, cancel requests, the startup packet, authentication
types         our types as PostgreSQL's, and values as text and binary
"""
