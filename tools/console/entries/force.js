export {
  forceSimulation, forceManyBody, forceLink, forceCenter, forceCollide, forceX, forceY, forceRadial,
} from "d3-force";
