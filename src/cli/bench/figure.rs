//! Measured figures: the samples of each round under a name.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

/// The name of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Key {
    pub part: &'static str,
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
}

impl Key {
    pub(super) const fn new(part: &'static str, name: &'static str) -> Self {
        Self { part, name, tasks: None, clients: None }
    }

    pub(super) const fn tasks(self, tasks: usize) -> Self {
        Self { tasks: Some(tasks), ..self }
    }

    pub(super) const fn clients(self, clients: usize) -> Self {
        Self { clients: Some(clients), ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "µs")]
    Micros,
    #[serde(rename = "per second")]
    PerSecond,
    #[serde(rename = "bytes")]
    Bytes,
    #[serde(rename = "calls")]
    Calls,
    /// Ratio of two figures.
    #[serde(rename = "share")]
    Share,
}

#[derive(Debug)]
pub(super) struct Figure {
    pub key: Key,
    pub unit: Unit,
    /// The samples of each round that had some.
    rounds: Vec<(usize, Vec<f64>)>,
}

#[derive(Debug, Default)]
pub(super) struct Figures {
    list: Vec<Figure>,
    round: usize,
}

impl Figures {
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Drops the samples of an aborted round, which has not gone through all parts.
    pub(super) fn forget_round(&mut self) {
        for figure in &mut self.list {
            figure.rounds.retain(|(round, _)| *round != self.round);
        }
        self.list.retain(|figure| !figure.rounds.is_empty());
    }

    pub(super) fn list(&self) -> &[Figure] {
        &self.list
    }

    pub(super) fn times(&mut self, key: Key, times: impl IntoIterator<Item = Duration>) {
        self.add(key, Unit::Micros, times.into_iter().map(micros));
    }

    pub(super) fn value(&mut self, key: Key, unit: Unit, value: f64) {
        self.add(key, unit, [value]);
    }

    pub(super) fn add(&mut self, key: Key, unit: Unit, samples: impl IntoIterator<Item = f64>) {
        let index = match self.list.iter().position(|figure| figure.key == key) {
            Some(index) => index,
            None => {
                self.list.push(Figure { key, unit, rounds: Vec::new() });
                self.list.len() - 1
            }
        };
        let rounds = &mut self.list[index].rounds;
        match rounds.last_mut() {
            Some((round, all)) if *round == self.round => all.extend(samples),
            _ => rounds.push((self.round, samples.into_iter().collect())),
        }
    }

    /// The median of all samples of all rounds.
    pub(super) fn median(&self, key: Key) -> Option<f64> {
        let figure = self.list.iter().find(|figure| figure.key == key)?;
        figure.quantile(50)
    }
}

impl Figure {
    /// The sample below which `percent` of all samples lie.
    pub(super) fn quantile(&self, percent: usize) -> Option<f64> {
        quantile(self.rounds.iter().flat_map(|(_, samples)| samples).copied().collect(), percent)
    }

    pub(super) fn count(&self) -> usize {
        self.rounds.iter().map(|(_, samples)| samples.len()).sum()
    }

    /// The lowest and the highest median of a round.
    pub(super) fn spread(&self) -> Option<(f64, f64)> {
        let medians: Vec<_> =
            self.rounds.iter().filter_map(|(_, samples)| quantile(samples.clone(), 50)).collect();
        Some((quantile(medians.clone(), 0)?, quantile(medians, 100)?))
    }

    /// The figure as JSON.
    pub(super) fn value(&self) -> Value {
        let mut value = serde_json::to_value(self.key).unwrap_or_default();
        let rounded =
            |number: Option<f64>| number.map(|number| (number * 1_000.0).round() / 1_000.0);
        let spread = self.spread();
        value["unit"] = json!(self.unit);
        value["samples"] = json!(self.count());
        value["median"] = json!(rounded(self.quantile(50)));
        value["p99"] = json!(rounded(self.quantile(99)));
        value["lowest_round"] = json!(rounded(spread.map(|(low, _)| low)));
        value["highest_round"] = json!(rounded(spread.map(|(_, high)| high)));
        value
    }
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The quantile of the samples; none if there are none. With an even number of them, the median is
/// the mean of the middle two.
pub(super) fn quantile(mut samples: Vec<f64>, percent: usize) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().checked_sub(1)?;
    let at = |index: usize| samples.get(index.min(last)).copied();
    match percent {
        50 => Some(f64::midpoint(at(last / 2)?, at(last.div_ceil(2))?)),
        _ => at(samples.len() * percent / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::new("part", "name");

    #[test]
    fn medians_are_of_all_rounds_and_the_spread_is_of_their_medians() {
        let mut figures = Figures::default();
        for round in [[1.0, 2.0, 9.0], [4.0, 5.0, 6.0]] {
            figures.begin_round();
            figures.add(KEY, Unit::Bytes, round[..1].iter().copied());
            figures.add(KEY, Unit::Bytes, round[1..].iter().copied());
        }
        assert_eq!(figures.median(KEY), Some(4.5));
        assert_eq!(figures.list()[0].spread(), Some((2.0, 5.0)));
        assert_eq!(figures.list()[0].quantile(99), Some(9.0));
        assert_eq!(figures.median(KEY.tasks(1)), None);
    }

    #[test]
    fn there_is_no_quantile_of_nothing() {
        assert_eq!(quantile(Vec::new(), 50), None);
        assert_eq!(quantile(vec![3.0], 99), Some(3.0));
    }
}
