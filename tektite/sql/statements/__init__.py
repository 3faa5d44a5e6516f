"""Running statements: sessions, tables, changes, transactions, prepared statements.

alter             ALTER TABLE: columns, names, defaults and constraints
columns           types and names of the columns of a result
connector_runner  what statements about sources and sinks ask of whoever runs them
constraints       PRIMARY KEY, NOT NULL, UNIQUE, CHECK and DEFAULT of tables
copy              COPY: files to tables, and results to files; CSV and Parquet
create            CREATE: tables, views and indexes
csv_lines         the line of a CSV file that Arrow complains of
describe          the parameters and columns of a statement, before it is run
direct            INSERT of given rows and SELECT by key, without a plan
direct_texts      finds out which texts are such statements
disclosure        what a user is told of what its views read
drop              DROP, with and without CASCADE
explain           EXPLAIN, as text and as JSON
grants            GRANT, REVOKE, and owners of objects
handlers          which function runs which statement
insert            INSERT, and what happens to rows whose key exists
parametrised      a query with labels in place of its constants
policies          CREATE POLICY, and ROW LEVEL SECURITY of a table
pauses            while a long statement is bound, others use the engine now and then
prepared          PREPARE and EXECUTE: one dataflow for all bindings
prepared_names    the names of prepared statements
property_graphs   CREATE PROPERTY GRAPH
result            the result of a statement
roles             CREATE ROLE, SET ROLE, tokens, and the objects of a role
runner            SQL's state of an engine; runs each statement
session_settings  SET and RESET
shared_queries    one dataflow for queries that differ in constants and users
shared_query      such a dataflow, who follows it and what they may keep
show              SHOW and DESCRIBE
shown_zone        moments of a result, by the clocks of the session's time zone
statement_cache   caches parsed and planned statements
table_writes      what INSERT, UPDATE and DELETE share: the table, its rows, RETURNING
transactions      BEGIN, COMMIT, ROLLBACK, and reads and writes between them
update            UPDATE: pairs of old and new rows
value_keys        values of parameters as keys
"""
