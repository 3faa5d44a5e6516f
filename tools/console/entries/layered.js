import * as dagre from "@dagrejs/dagre";
export { dagre };
export const Graph = dagre.Graph ?? dagre.graphlib.Graph;
export const layout = dagre.layout;
