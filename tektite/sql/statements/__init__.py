"""Running statements: sessions, tables, changes, transactions, prepared statements.

copy             tables from files and results to files, as CSV or Parquet
create           tables, views and indexes: CREATE and DROP
drop             tables, views and indexes, one by one while nothing reads them, or, with CASCADE, together with all that does
insert           new rows, and what happens to those whose key is there already
prepared         installed once, they answer any number of bindings in one dataflow
result           what a statement gives back
session          what SQL knows of an engine beside its inputs and views, and how each statement is run
show             what there is, as tables
statement_cache  statements that were seen before: parsed once, and planned again only where what their plans stand on has
                 changed
table_writes     what statements that change tables have in common: the table, the rows they found, and what RETURNING gives
                 of them
transactions     BEGIN, COMMIT, ROLLBACK, and what is read and written between them
update           rows that go, each with the one that comes for it
"""
