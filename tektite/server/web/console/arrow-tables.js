// Arrow streams as columns whose values are what JSON can hold: the same as the server's JSON has, without losing digits.

import { DataType, tableFromIPC } from "./vendor/arrow.js";

/** {columns: [{name, type, at(row)}], length} of a stream. */
export function columnsOf(stream) {
  const table = tableFromIPC(stream);
  const columns = table.schema.fields.map((field, at) => ({ name: field.name, type: typeName(field.type), at: reader(table.getChildAt(at), field.type) }));
  return { columns, length: table.numRows };
}

/** {columns, types, rows} of a stream, as answers in JSON have them. */
export function rowsOf(stream) {
  const { columns, length } = columnsOf(stream);
  const rows = Array.from({ length }, (_, row) => columns.map((column) => column.at(row)));
  return { columns: columns.map(({ name }) => name), types: columns.map(({ type }) => type), rows, fixed: { columns, length } };
}

function typeName(type) {
  if (DataType.isInt(type)) return "int";
  if (DataType.isFloat(type)) return "float";
  if (DataType.isDecimal(type)) return `decimal(${type.precision}, ${type.scale})`;
  if (DataType.isBool(type)) return "bool";
  if (DataType.isDate(type)) return "date";
  if (DataType.isTimestamp(type)) return type.timezone ? "timestamptz" : "timestamp";
  if (DataType.isUtf8(type) || DataType.isLargeUtf8?.(type)) return "string";
  if (DataType.isDictionary(type)) return typeName(type.dictionary);
  return String(type).toLowerCase();
}

function reader(vector, type) {
  if (DataType.isInt(type) && type.bitWidth === 64) return (row) => exact(vector.get(row));
  if (DataType.isFloat(type)) {
    return (row) => {
      const value = vector.get(row);
      return value === null || Number.isFinite(value) ? value : String(value);
    };
  }
  if (DataType.isDecimal(type)) return (row) => decimal(vector.get(row), type.scale);
  if (DataType.isDate(type)) {
    return (row) => {
      const value = vector.get(row);
      return value === null ? null : new Date(Number(value)).toISOString().slice(0, 10);
    };
  }
  if (DataType.isTimestamp(type)) return timestamps(vector, type);
  if (DataType.isBool(type) || DataType.isUtf8(type) || DataType.isDictionary(type) || DataType.isInt(type)) return (row) => vector.get(row);
  return (row) => {
    const value = vector.get(row);
    return value === null || typeof value === "string" ? value : text(value);
  };
}

const exact = (value) => (typeof value !== "bigint" ? value : value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : String(value));

/** A decimal of 128 bits: four words, the lowest first. */
function decimal(words, scale) {
  if (words === null) return null;
  let value = 0n;
  for (let at = words.length - 1; at >= 0; at -= 1) value = (value << 32n) | BigInt(words[at]);
  value = BigInt.asIntN(32 * words.length, value);
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  const sign = value < 0n ? "-" : "";
  return scale > 0 ? `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}` : sign + digits;
}

/** Timestamps with all their microseconds, which a Date does not have. */
function timestamps(vector, type) {
  const perSecond = [1n, 1000n, 1000000n, 1000000000n][type.unit];
  const starts = [];
  let rows = 0;
  for (const data of vector.data) {
    starts.push(rows);
    rows += data.length;
  }
  return (row) => {
    if (vector.get(row) === null) return null;
    let piece = starts.length - 1;
    while (starts[piece] > row) piece -= 1;
    const value = vector.data[piece].values[row - starts[piece]];
    const micros = (value * 1000000n) / perSecond;
    const whole = micros >= 0n ? micros / 1000000n : -((-micros + 999999n) / 1000000n);
    const rest = String(micros - whole * 1000000n).padStart(6, "0");
    return `${new Date(Number(whole) * 1000).toISOString().slice(0, 19)}.${rest}${type.timezone ? "Z" : ""}`;
  };
}

/** A nested value, as JSON. */
const text = (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? exact(each) : ArrayBuffer.isView(each) ? Array.from(each, exact) : each?.toJSON ? each.toJSON() : each));
