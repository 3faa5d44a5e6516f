//! Graspan's analyses, for `python -m benchmarks program_analysis`: `analysis FILE FORM WORKERS REMOVALS`, where FORM is dataflow, plain
//! or shared, as in `examples/analysis/rules/c`.
//!
//! FILE has a fact a line, over numbers: `a from to` (an assignment within a function), `c from to` (one between functions),
//! `p pointer part label`, `n assignment to` (an assignment of null). After the first answer the first REMOVALS facts are removed,
//! one epoch each: assignments of null for dataflow, assignments for the others.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use differential_dataflow::input::Input;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;

type Fact = (char, u32, u32, u32);

fn facts_of(file: &str) -> Vec<Fact> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| {
            let mut words = line.split(' ');
            let kind = words.next().unwrap().chars().next().unwrap();
            let mut number = || words.next().map_or(0, |word| word.parse().unwrap());
            (kind, number(), number(), number())
        })
        .collect()
}

pub fn run(args: &[String]) {
    let facts = Arc::new(facts_of(&args[0]));
    let form = args[1].clone();
    let (workers, removals): (usize, usize) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let total = Arc::new(AtomicI64::new(0));
    let config = if workers == 1 { timely::Config::thread() } else { timely::Config::process(workers) };
    timely::execute(config, move |worker| {
        let mut probe = Handle::new();
        let seen = total.clone();
        let (index, peers) = (worker.index(), worker.peers());
        let mut input = worker.dataflow::<u64, _, _>(|outer| {
            let (input, facts) = outer.new_collection::<Fact, isize>();
            let count = move |diff: isize| { seen.fetch_add(diff as i64, Ordering::Relaxed); };
            let again = count.clone();
            let pairs = |kinds: &'static str| {
                facts.clone().flat_map(move |(kind, x, y, _)| if kinds.contains(kind) { Some((x, y)) } else { None })
            };
            if form == "dataflow" {
                let assigned = pairs("ac").distinct();
                let nulls = pairs("n").map(|(n, x)| (x, n));
                nulls
                    .clone()
                    .iterate(|scope, inner| {
                        let assigned = assigned.enter(scope);
                        let nulls = nulls.enter(scope);
                        inner.join_map(assigned, |_x, n, y| (*y, *n)).concat(nulls).distinct()
                    })
                    .map(|(x, _)| x)
                    .distinct()
                    .inspect(move |update| count(update.2))
                    .probe_with(&mut probe);
                return input;
            }
            let step = pairs("a").distinct();
            let part = facts.clone().flat_map(|(kind, p, x, l)| if kind == 'p' { Some((p, (x, l))) } else { None }).distinct();
            let ends = step.clone().flat_map(|(x, y)| [x, y]);
            let nodes = part.clone().flat_map(|(p, (x, _))| [p, x]).concat(ends).distinct().map(|x| (x, x));
            let shared = form == "shared";
            let (flow, alias) = outer.scoped::<Product<_, usize>, _, _>("Aliases", |scope| {
                let (step, part, nodes) = (step.enter(scope), part.enter(scope), nodes.enter(scope));
                let later = || Product::new(Default::default(), 1usize);
                let (flow_bind, flow) = Variable::new(scope, later());
                let (alias_bind, alias) = Variable::new(scope, later());
                let from = flow.clone().arrange_by_key();
                let alias_from = alias.clone().arrange_by_key();
                let to = flow.clone().map(|(x, y): (u32, u32)| (y, x)).arrange_by_key();
                let steps = step.clone().arrange_by_key();
                let after_alias =
                    alias.map(|(x, z): (u32, u32)| (z, x)).arrange_by_key().join_core(steps.clone(), |_z, x, y| Some((*x, *y)));
                let (next_flow, next_alias) = if shared {
                    let after_alias = after_alias.distinct();
                    let next = to
                        .clone()
                        .join_core(steps, |_y, x, z| Some((*x, *z)))
                        .concat(to.clone().join_core(after_alias.arrange_by_key(), |_y, x, z| Some((*x, *z))));
                    let reached = to.join_core(part.arrange_by_key(), |_y, z, (x, l)| Some((*z, (*x, *l)))).distinct();
                    let labelled = reached.clone().map(|(z, (x, l))| ((z, l), x)).arrange_by_key();
                    let same = labelled.clone().join_core(labelled.clone(), |_, x, w| Some((*x, *w)));
                    let other = reached
                        .arrange_by_key()
                        .join_core(alias_from, |_z, (x, l), u| Some(((*u, *l), *x)))
                        .arrange_by_key()
                        .join_core(labelled, |_, x, w| Some((*x, *w)));
                    (next.concat(nodes), same.concat(other))
                } else {
                    let next = to.join_core(from.clone(), |_y, x, z| Some((*x, *z))).concat(after_alias).concat(step);
                    let through = from
                        .clone()
                        .join_core(alias_from, |_z, x, w| Some((*w, *x)))
                        .arrange_by_key()
                        .join_core(from.clone(), |_w, x, y| Some((*x, *y)));
                    let values = from.clone().join_core(from, |_z, x, y| Some((*x, *y))).concat(through).distinct();
                    let parts = part.clone().map(|(p, (x, l))| ((p, l), x)).arrange_by_key();
                    let found = part
                        .arrange_by_key()
                        .join_core(values.arrange_by_key(), |_y, (x, l), z| Some(((*z, *l), *x)))
                        .arrange_by_key()
                        .join_core(parts, |_, x, w| Some((*x, *w)));
                    (next.concat(nodes), found)
                };
                let (next_flow, next_alias) = (next_flow.distinct(), next_alias.distinct());
                flow_bind.set(next_flow.clone());
                alias_bind.set(next_alias.clone());
                (next_flow.leave(outer), next_alias.leave(outer))
            });
            flow.inspect(move |update| count(update.2)).probe_with(&mut probe);
            alias.inspect(move |update| again(update.2)).probe_with(&mut probe);
            input
        });
        let (start, used) = (Instant::now(), crate::cpu());
        for fact in facts.iter().skip(index).step_by(peers) {
            input.insert(*fact);
        }
        input.advance_to(1);
        input.flush();
        worker.step_while(|| probe.less_than(input.time()));
        if index == 0 {
            println!(
                "{{\"phase\": \"first\", \"rows\": {}, \"first_s\": {:.4}, \"cpu_seconds\": {:.2}, \"peak_mib\": {:.0}}}",
                total.load(Ordering::Relaxed), start.elapsed().as_secs_f64(), crate::cpu() - used, crate::status("VmHWM"),
            );
        }
        let kind = if form == "dataflow" { 'n' } else { 'a' };
        let mut laps = vec![];
        for fact in facts.iter().filter(|fact| fact.0 == kind).take(removals) {
            let start = Instant::now();
            if index == 0 {
                input.remove(*fact);
            }
            let next = *input.time() + 1;
            input.advance_to(next);
            input.flush();
            worker.step_while(|| probe.less_than(input.time()));
            laps.push(start.elapsed().as_secs_f64() * 1e6);
        }
        if index == 0 && !laps.is_empty() {
            laps.sort_by(|a, b| a.partial_cmp(b).unwrap());
            println!(
                "{{\"phase\": \"removals\", \"rows\": {}, \"removal_p50_us\": {:.0}, \"removal_max_us\": {:.0}}}",
                total.load(Ordering::Relaxed), laps[laps.len() / 2], laps[laps.len() - 1],
            );
        }
    })
    .unwrap();
}
