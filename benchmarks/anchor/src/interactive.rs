//! The workloads **count**, **join** and **bfs** of benchmarks/workloads.py, record by record the same: everything is drawn from
//! `r(seed, i)`, splitmix64 as a function of a counter.
//!
//! Each prints one JSON object a line: the load, then the latencies of epochs or of installs.

use std::time::Instant;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::{Handle, Probe};

const COUNT: u64 = 1;
const EDGES: u64 = 2;
const VALUES: u64 = 3;
const QUERIES: u64 = 7;

fn r(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    z ^ (z >> 31)
}

fn count_key(keys: u64, record: u64) -> u32 {
    (r(COUNT, record) % keys) as u32
}

fn edge(nodes: u64, number: u64) -> (u32, u32) {
    ((r(EDGES, 2 * number) % nodes) as u32, (r(EDGES, 2 * number + 1) % nodes) as u32)
}

fn report(phase: &str, what: &str, size: u64, mut laps: Vec<f64>) {
    laps.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let at = |part: f64| laps[((laps.len() - 1) as f64 * part) as usize] * 1e6;
    println!(
        "{{\"phase\": \"{}\", \"{}\": {}, \"epochs\": {}, \"p50_us\": {:.1}, \"p99_us\": {:.1}}}",
        phase, what, size, laps.len(), at(0.5), at(0.99),
    );
}

/// Which numbers are added, behind the first `loaded`, and which of the oldest are removed in an epoch of so many updates. Epochs
/// of one update alternate: an insert, then the removal that belongs to it.
fn swapped(size: u64, epoch: u64, first: u64) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
    if size == 1 {
        let j = first + epoch / 2;
        return if epoch % 2 == 0 { (j..j + 1, 0..0) } else { (0..0, j..j + 1) };
    }
    let j = first + epoch * size / 2..first + (epoch + 1) * size / 2;
    (j.clone(), j)
}

/// `count KEYS RECORDS SECONDS SIZE...`: how many records each key has.
pub fn count(args: Vec<u64>) {
    let (keys, records, seconds) = (args[0], args[1], args[2] as f64);
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let mut input: InputSession<u64, u32, isize> = worker.dataflow(|scope| {
            let (input, records) = scope.new_collection();
            records.count().probe_with(&mut probe);
            input
        });
        let start = Instant::now();
        (0..records).for_each(|record| input.insert(count_key(keys, record)));
        input.advance_to(1);
        input.flush();
        worker.step_while(|| probe.less_than(input.time()));
        println!("{{\"phase\": \"load\", \"seconds\": {:.3}}}", start.elapsed().as_secs_f64());
        let mut first = 0;
        for size in &args[3..] {
            let (mut laps, mut epoch, began) = (vec![], 0, Instant::now());
            while began.elapsed().as_secs_f64() < seconds {
                let (added, gone) = swapped(*size, epoch, first);
                let added: Vec<u32> = added.map(|j| count_key(keys, records + j)).collect();
                let gone: Vec<u32> = gone.map(|j| count_key(keys, j)).collect();
                let start = Instant::now();
                added.into_iter().for_each(|key| input.insert(key));
                gone.into_iter().for_each(|key| input.remove(key));
                let next = *input.time() + 1;
                input.advance_to(next);
                input.flush();
                worker.step_while(|| probe.less_than(input.time()));
                laps.push(start.elapsed().as_secs_f64());
                epoch += 1;
            }
            first += (epoch + epoch % 2) * size / 2;
            report("epochs", "B", *size, laps);
        }
    });
}

/// `bfs NODES EDGES SECONDS SWAPS...`: distances from node 0.
pub fn bfs(args: Vec<u64>) {
    let (nodes, edges, seconds) = (args[0], args[1], args[2] as f64);
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let (mut roots, mut graph): (InputSession<u64, u32, isize>, InputSession<u64, (u32, u32), isize>) =
            worker.dataflow(|scope| {
                let (roots, from) = scope.new_collection();
                let (graph, edges) = scope.new_collection();
                let start = from.map(|node: u32| (node, 0u32));
                start
                    .clone()
                    .iterate(|scope, inner| {
                        let edges = edges.enter(scope);
                        let start = start.enter(scope);
                        inner
                            .join_map(edges, |_node, distance, next: &u32| (*next, distance + 1))
                            .concat(start)
                            .reduce(|_node, found, out| out.push((*found[0].0, 1)))
                    })
                    .probe_with(&mut probe);
                (roots, graph)
            });
        let start = Instant::now();
        roots.insert(0);
        (0..edges).for_each(|number| graph.insert(edge(nodes, number)));
        let mut time = 1;
        roots.advance_to(time);
        roots.flush();
        graph.advance_to(time);
        graph.flush();
        worker.step_while(|| probe.less_than(graph.time()));
        println!("{{\"phase\": \"first\", \"seconds\": {:.3}}}", start.elapsed().as_secs_f64());
        let mut first = 0;
        for swaps in &args[3..] {
            let (mut laps, began) = (vec![], Instant::now());
            while began.elapsed().as_secs_f64() < seconds {
                let added: Vec<_> = (first..first + swaps).map(|j| edge(nodes, edges + j)).collect();
                let gone: Vec<_> = (first..first + swaps).map(|j| edge(nodes, j)).collect();
                let start = Instant::now();
                added.into_iter().for_each(|edge| graph.insert(edge));
                gone.into_iter().for_each(|edge| graph.remove(edge));
                time += 1;
                roots.advance_to(time);
                roots.flush();
                graph.advance_to(time);
                graph.flush();
                worker.step_while(|| probe.less_than(graph.time()));
                laps.push(start.elapsed().as_secs_f64());
                first += swaps;
            }
            report("epochs", "S", *swaps, laps);
        }
    });
}

/// `join ROWS INSTALLS`: queries of one key each, installed on an arrangement that is there, answered and dropped.
pub fn join(args: Vec<u64>) {
    let (rows, installs) = (args[0], args[1]);
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let (mut input, mut trace) = worker.dataflow(|scope| {
            let (input, rows) = scope.new_collection::<(u64, u64), isize>();
            let arranged = rows.arrange_by_key();
            arranged.stream.clone().probe_with(&mut probe);
            (input, arranged.trace)
        });
        let bulk = rows - 50 * 100;
        let mut time = 0u64;
        let mut place = 0;
        let start = Instant::now();
        for stop in std::iter::once(bulk).chain((1..=50).map(|small| bulk + 100 * small)) {
            (place..stop).for_each(|row| input.insert((row, r(VALUES, row))));
            place = stop;
            time += 1;
            input.advance_to(time);
            input.flush();
            worker.step_while(|| probe.less_than(input.time()));
        }
        println!("{{\"phase\": \"load\", \"seconds\": {:.3}}}", start.elapsed().as_secs_f64());
        let mut laps = vec![];
        for number in 0..installs {
            let key = r(QUERIES, number) % rows;
            let start = Instant::now();
            let mut answered = Handle::new();
            let mut query = worker.dataflow(|scope| {
                let (query, keys) = scope.new_collection::<(u64, ()), isize>();
                keys.arrange_by_key()
                    .join_core(trace.import(scope), |key, _, value| Some((*key, *value)))
                    .probe_with(&mut answered);
                query
            });
            query.insert((key, ()));
            query.advance_to(time);
            query.flush();
            worker.step_while(|| answered.less_than(query.time()));
            laps.push(start.elapsed().as_secs_f64());
        }
        report("install", &format!("K\": {}, \"Q", rows), 1, laps);
    });
}
