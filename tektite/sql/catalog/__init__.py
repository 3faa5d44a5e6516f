"""The system catalogs: `pg_catalog` and `information_schema`, built when a statement reads them and never stored.

array_text       arrays as the texts that PostgreSQL writes for them
catalog_lookup   functions and casts that look something up in the catalogs
constant_lookup  look-ups in mappings of constants, as expressions
contents         what there is in an engine, with oids
information      the rows of information_schema
oids             numbers of objects that are the same after a restart
pg_relations     the rows of pg_catalog
pg_types         the types of PostgreSQL that columns are shown with
privileges       functions that say who may do what
schemas          schemas: names in two parts, and the search path
set_functions    unnest and its like where a value stands
settings         SET and SHOW: the settings of a session
system_columns   the columns of every system relation
system_reads     system relations as a statement reads them
"""
