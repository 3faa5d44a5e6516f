//! The benchmarks' workloads in differential-dataflow: `anchor count|join|bfs NUMBERS...` (see `interactive`), `anchor graph ...`
//! (see `graphs`), `anchor analysis ...` (see `analysis`), and transitive closure and same generation, for
//! `python -m benchmarks datalog`.
//!
//! `anchor tc|sg FILE WORKERS` reads edges, a pair of numbers a line, and prints one JSON object a line: the first answer, and
//! what taking an edge out and putting it back takes. Memory is the process's peak; the edges themselves, which the file's
//! text is read into, are counted in it as they are in the other side's.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use differential_dataflow::input::Input;
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::Handle;

mod analysis;
mod graphs;
mod interactive;

fn status(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Processor seconds of all threads.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let words: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (words[11].parse::<f64>().unwrap() + words[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let program = args[1].clone();
    if let Some(run) = [("count", interactive::count as fn(Vec<u64>)), ("join", interactive::join), ("bfs", interactive::bfs)]
        .iter()
        .find(|(name, _)| *name == program)
    {
        return run.1(args[2..].iter().map(|word| word.parse().unwrap()).collect());
    }
    if program == "graph" {
        return graphs::run(&args[2..]);
    }
    if program == "analysis" {
        return analysis::run(&args[2..]);
    }
    let workers: usize = args[3].parse().unwrap();
    let text = std::fs::read_to_string(&args[2]).unwrap();
    let edges: Arc<Vec<(u32, u32)>> = Arc::new(
        text.lines()
            .map(|line| {
                let mut words = line.split_whitespace().map(|word| word.parse().unwrap());
                (words.next().unwrap(), words.next().unwrap())
            })
            .collect(),
    );
    drop(text);
    let total = Arc::new(AtomicI64::new(0));
    let config = if workers == 1 { timely::Config::thread() } else { timely::Config::process(workers) };
    timely::execute(config, move |worker| {
        let mut probe = Handle::new();
        let seen = total.clone();
        let closure = program == "tc";
        let (index, peers) = (worker.index(), worker.peers());
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, graph) = scope.new_collection::<(u32, u32), isize>();
            let found = if closure {
                graph.clone().iterate(|scope, inner| {
                    let edges = graph.enter(scope);
                    inner.map(|(x, y)| (y, x)).join_map(edges.clone(), |_y, x, z| (*x, *z)).concat(edges).distinct()
                })
            } else {
                let base = graph.clone().join_map(graph.clone(), |_p, x, y| (*x, *y)).filter(|(x, y)| x != y).distinct();
                base.clone().iterate(|scope, inner| {
                    let edges = graph.enter(scope);
                    let base = base.enter(scope);
                    inner
                        .join_map(edges.clone(), |_a, b, x| (*b, *x))
                        .join_map(edges, |_b, x, y| (*x, *y))
                        .concat(base)
                        .distinct()
                })
            };
            found.inspect(move |update| { seen.fetch_add(update.2 as i64, Ordering::Relaxed); }).probe_with(&mut probe);
            input
        });
        let (start, used) = (Instant::now(), cpu());
        for edge in edges.iter().skip(index).step_by(peers) {
            input.insert(*edge);
        }
        input.advance_to(1);
        input.flush();
        worker.step_while(|| probe.less_than(input.time()));
        if index == 0 {
            println!(
                "{{\"phase\": \"first\", \"facts\": {}, \"seconds\": {:.4}, \"cpu_seconds\": {:.2}, \"rss_mib\": {:.0}, \"peak_mib\": {:.0}}}",
                total.load(Ordering::Relaxed), start.elapsed().as_secs_f64(), cpu() - used, status("VmRSS"), status("VmHWM"),
            );
        }
        let mut laps = vec![];
        for at in [0, edges.len() / 2, edges.len() - 1] {
            for insert in [false, true] {
                let start = Instant::now();
                if index == 0 {
                    if insert { input.insert(edges[at]) } else { input.remove(edges[at]) }
                }
                let next = *input.time() + 1;
                input.advance_to(next);
                input.flush();
                worker.step_while(|| probe.less_than(input.time()));
                laps.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        if index == 0 {
            laps.sort_by(|a, b| a.partial_cmp(b).unwrap());
            println!(
                "{{\"phase\": \"epochs\", \"p50_us\": {:.0}, \"max_us\": {:.0}, \"peak_mib\": {:.0}}}",
                laps[laps.len() / 2], laps[laps.len() - 1], status("VmHWM"),
            );
        }
    })
    .unwrap();
}
