export { tableFromIPC, Type, DataType } from "apache-arrow";
