//! Graphs, for `python -m benchmarks graph_tasks`: `graph FILE TASK WORKERS LOADED SWAPS EPOCHS`, where TASK is index, reach, sssp, wcc,
//! or the same with `plain-` before it, which is single-threaded code over hash maps.
//!
//! FILE has edges as pairs of 32-bit numbers. The first LOADED are there at first. Each epoch adds the next SWAPS and removes the
//! oldest. Distances and labels begin at node 0; an edge's weight is made of its ends, as in `benchmarks/graph_tasks.py`.

use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use differential_dataflow::algorithms::graphs::propagate;
use differential_dataflow::input::Input;
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::{Handle, Probe};

type Edge = (u32, u32);

fn weight(edge: Edge) -> u32 {
    (edge.0.wrapping_mul(31).wrapping_add(edge.1.wrapping_mul(17))) % 10 + 1
}

fn edges_of(file: &str) -> Vec<Edge> {
    let bytes = std::fs::read(file).unwrap();
    let words: Vec<u32> = bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect();
    words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

fn report(phase: &str, rows: i64, start: Instant, used: f64) {
    println!(
        "{{\"phase\": \"{}\", \"rows\": {}, \"seconds\": {:.4}, \"cpu_seconds\": {:.2}, \"peak_mib\": {:.0}}}",
        phase, rows, start.elapsed().as_secs_f64(), crate::cpu() - used, crate::status("VmHWM"),
    );
}

pub fn run(args: &[String]) {
    let task = args[1].clone();
    let numbers: Vec<usize> = args[2..].iter().map(|word| word.parse().unwrap()).collect();
    let (workers, loaded, swaps, epochs) = (numbers[0], numbers[1], numbers[2], numbers[3]);
    let edges = Arc::new(edges_of(&args[0]));
    if let Some(task) = task.strip_prefix("plain-") {
        return plain(task, &edges[..loaded]);
    }
    let total = Arc::new(AtomicI64::new(0));
    let config = if workers == 1 { timely::Config::thread() } else { timely::Config::process(workers) };
    timely::execute(config, move |worker| {
        let mut probe = Handle::new();
        let seen = total.clone();
        let (index, peers) = (worker.index(), worker.peers());
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, graph) = scope.new_collection::<Edge, isize>();
            let count = move |diff: isize| { seen.fetch_add(diff as i64, Ordering::Relaxed); };
            match task.as_str() {
                "index" => {
                    graph.arrange_by_key().stream.probe_with(&mut probe);
                }
                "reach" => {
                    let roots = graph.clone().flat_map(|(x, y)| [x, y]).filter(|x| *x == 0).distinct();
                    roots
                        .clone()
                        .iterate(|scope, inner| {
                            let edges = graph.enter(scope);
                            let roots = roots.enter(scope);
                            edges.semijoin(inner).map(|(_, y)| y).concat(roots).distinct()
                        })
                        .inspect(move |update| count(update.2))
                        .probe_with(&mut probe);
                }
                "sssp" => {
                    let weighted = graph.clone().map(|edge| (edge.0, (edge.1, weight(edge))));
                    let roots = graph.flat_map(|(x, y)| [x, y]).filter(|x| *x == 0).distinct().map(|x| (x, 0u32));
                    roots
                        .clone()
                        .iterate(|scope, inner| {
                            let edges = weighted.enter(scope);
                            let roots = roots.enter(scope);
                            inner
                                .join_map(edges, |_x, d, (y, w)| (*y, d + w))
                                .concat(roots)
                                .reduce(|_, found, out| out.push((*found[0].0, 1)))
                        })
                        .inspect(move |update| count(update.2))
                        .probe_with(&mut probe);
                }
                "wcc" => {
                    let both = graph.clone().map(|(x, y)| (y, x)).concat(graph.clone());
                    let nodes = both.clone().map(|(x, _)| x).distinct().map(|x| (x, x));
                    propagate::propagate_at(both, nodes, |label| *label as u64)
                        .inspect(move |update| count(update.2))
                        .probe_with(&mut probe);
                }
                other => panic!("no task {}", other),
            }
            input
        });
        let (start, used) = (Instant::now(), crate::cpu());
        for edge in edges[..loaded].iter().skip(index).step_by(peers) {
            input.insert(*edge);
        }
        input.advance_to(1);
        input.flush();
        worker.step_while(|| probe.less_than(input.time()));
        if index == 0 {
            report("first", total.load(Ordering::Relaxed), start, used);
        }
        let (mut laps, used) = (vec![], crate::cpu());
        for epoch in 0..epochs {
            let at = epoch * swaps;
            let start = Instant::now();
            for place in (0..swaps).skip(index).step_by(peers) {
                input.insert(edges[loaded + at + place]);
                input.remove(edges[at + place]);
            }
            let next = *input.time() + 1;
            input.advance_to(next);
            input.flush();
            worker.step_while(|| probe.less_than(input.time()));
            laps.push(start.elapsed().as_secs_f64() * 1e6);
        }
        if index == 0 && epochs > 0 {
            laps.sort_by(|a, b| a.partial_cmp(b).unwrap());
            println!(
                "{{\"phase\": \"epochs\", \"rows\": {}, \"p50_us\": {:.0}, \"p99_us\": {:.0}, \"cpu_seconds\": {:.2}, \"peak_mib\": {:.0}}}",
                total.load(Ordering::Relaxed), laps[laps.len() / 2], laps[(laps.len() - 1) * 99 / 100], crate::cpu() - used,
                crate::status("VmHWM"),
            );
        }
    })
    .unwrap();
}

/// What a program of its own would do: adjacency lists in hash maps, and a search.
fn plain(task: &str, edges: &[Edge]) {
    let (start, used) = (Instant::now(), crate::cpu());
    let mut after: HashMap<u32, Vec<u32>> = HashMap::new();
    for (x, y) in edges {
        after.entry(*x).or_default().push(*y);
        if task == "wcc" {
            after.entry(*y).or_default().push(*x);
        }
    }
    let rows = match task {
        "index" => edges.len(),
        "reach" => {
            let (mut found, mut stack) = (HashSet::from([0u32]), vec![0u32]);
            while let Some(node) = stack.pop() {
                for next in after.get(&node).into_iter().flatten() {
                    if found.insert(*next) {
                        stack.push(*next);
                    }
                }
            }
            found.len()
        }
        "sssp" => {
            let mut found: HashMap<u32, u32> = HashMap::new();
            let mut heap = BinaryHeap::from([(std::cmp::Reverse(0u32), 0u32)]);
            while let Some((distance, node)) = heap.pop() {
                if let Entry::Vacant(place) = found.entry(node) {
                    place.insert(distance.0);
                    for next in after.get(&node).into_iter().flatten() {
                        heap.push((std::cmp::Reverse(distance.0 + weight((node, *next))), *next));
                    }
                }
            }
            found.len()
        }
        "wcc" => {
            let mut found: HashMap<u32, u32> = HashMap::new();
            let mut nodes: Vec<u32> = after.keys().copied().collect();
            nodes.sort_unstable();
            for root in nodes {
                let mut stack = vec![root];
                while let Some(node) = stack.pop() {
                    if let Entry::Vacant(place) = found.entry(node) {
                        place.insert(root);
                        stack.extend(&after[&node]);
                    }
                }
            }
            found.len()
        }
        other => panic!("no task {}", other),
    };
    report("first", rows as i64, start, used);
}
