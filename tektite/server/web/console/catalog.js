// What there is to ask: the tables and views that the user may read, with their columns; and the relations about the engine.

const COLUMNS = `SELECT n.nspname, c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND a.attnum > 0 AND c.relkind IN ('r', 'v', 'm')
  AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname, a.attnum`;
const SHORT = { bigint: "int", "double precision": "float", text: "string", boolean: "bool", "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz" };

/** Relations that the engine keeps about itself: docs/api/system-relations.md. They are in no catalog. */
export const SYSTEM = [
  "views", "tables", "indexes", "index_readers", "dataflows", "operators", "channels", "loops", "work", "traffic", "epoch_work", "merges", "sweeps", "epochs", "clients",
  "queries", "plans", "subscriptions", "memory", "storage", "positions", "connectors", "errors", "advice", "requirements",
];

/** {name: {kind, columns: [{name, type}]}}; relations of other schemas than `public` are named with theirs. */
export async function readCatalog(session) {
  const { table } = await session.sql(COLUMNS);
  const found = {};
  for (const [schema, relation, kind, column, type] of table.rows) {
    const name = schema === "public" ? relation : `${schema}.${relation}`;
    found[name] ??= { kind: kind === "r" ? "table" : "view", columns: [] };
    found[name].columns.push({ name: column, type: SHORT[type] ?? type.replace("numeric", "decimal") });
  }
  return found;
}
