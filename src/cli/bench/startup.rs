//! The time from the start of a process to its first reply, and the memory that it needs per task.

use std::time::Instant;

use fs_err as fs;
use serde_json::Value;

use super::doors::{Client, Stdio};
use super::figure::{Key, Unit};
use super::place::Board;
use super::{Bench, Measure, machine};
use crate::statefile;

const PART: &str = "start";
pub(super) const START: Key = Key::new(PART, "start to first reply");
pub(super) const PARSE: Key = Key::new(PART, "serde_json parses the state file");
pub(super) const MEMORY: Key = Key::new(PART, "memory for a task");
const ALL_MEMORY: Key = Key::new(PART, "memory of a process");
const FILE: Key = Key::new(PART, "size of the state file");

pub(super) struct Startup {
    large: Board,
    small: Board,
}

impl Startup {
    pub(super) fn new(bench: &mut Bench) -> anyhow::Result<Self> {
        let tasks = bench.size.started;
        bench.begin(format_args!("a board of {tasks} tasks is made"));
        Ok(Self { large: bench.place.board(tasks, 1)?, small: bench.place.board(1, 1)? })
    }
}

impl Measure for Startup {
    fn round(&mut self, bench: &mut Bench) -> anyhow::Result<()> {
        let tasks = bench.size.started;
        bench.begin(format_args!("starts at {tasks} tasks"));
        let mut memory = [None; 2];
        for ((board, tasks), memory) in
            [(&self.small, 1), (&self.large, tasks)].into_iter().zip(&mut memory)
        {
            let start = Instant::now();
            let mut process = Stdio::start(board)?;
            process.call("get_status", "{}")?;
            bench.figures.times(START.tasks(tasks), [start.elapsed()]);
            *memory = machine::memory(process.process());
            if let Some(memory) = memory {
                bench.figures.value(ALL_MEMORY.tasks(tasks), Unit::Bytes, *memory as f64);
            }
        }
        if let [Some(small), Some(large)] = memory {
            let each = large.saturating_sub(small) as f64 / tasks as f64;
            bench.figures.value(MEMORY.tasks(tasks), Unit::Bytes, each);
        }
        let start = Instant::now();
        let text = fs::read(self.large.join(statefile::FILE_NAME))?;
        let parsed: Value = serde_json::from_slice(&text)?;
        bench.figures.times(PARSE.tasks(tasks), [start.elapsed()]);
        drop(parsed);
        bench.figures.value(FILE.tasks(tasks), Unit::Bytes, text.len() as f64);
        Ok(())
    }
}
