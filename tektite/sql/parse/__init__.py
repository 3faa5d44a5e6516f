"""From text to sqlglot trees: parsing, tokens, places in a text, what is understood.

access_statements  statements about roles, grants and policies
connector_statements  CREATE SOURCE, CREATE SINK
depth_limit        how deep a statement may nest
dialect            DuckDB's dialect, where sqlglot reads it otherwise than DuckDB
instead            what to write in place of what is refused
internal_tables    relations that only trees of the program's own making can read
parser             parses DuckDB's dialect with sqlglot, and statements that sqlglot lacks
places             places in a text, and errors that show the line with a caret
postgres_spelling  what tools of PostgreSQL write, spelt as sqlglot reads it
property_graphs    CREATE PROPERTY GRAPH, and the pattern in GRAPH_TABLE
read_arguments     notes which arguments of sqlglot's nodes are read; others are refused
statements         the kinds of statements, and what each says
splitter           splits a text into statements, line by line
tokens             checks tokens before sqlglot: finds mistakes that it would accept
transaction_modes  isolation levels and READ ONLY, of BEGIN and SET TRANSACTION
"""
