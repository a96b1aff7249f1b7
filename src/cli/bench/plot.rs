//! The cost of a claim on larger and larger boards: bars for a terminal, and a drawing.

use std::fmt::Write;

use super::figure::{Figures, Key, Unit};
use super::report::grouped;
use super::{calibration, commit};

/// Medians, in microseconds, by number of tasks.
pub(super) struct Curve {
    name: &'static str,
    points: Vec<(usize, f64)>,
}

/// The curves of the figures that were measured.
pub(super) fn curves(figures: &Figures) -> Vec<Curve> {
    let drawn: [(Key, &str); 4] = [
        (commit::CLAIM, "durable claim"),
        (commit::COMPLETE, "durable completion"),
        (commit::SQLITE, "SQLite FULL commit"),
        (calibration::REPLACE, "write, fsync and rename the state file"),
    ];
    let of = |(key, name): (Key, &'static str)| {
        let about = |found: &Key| {
            found.part == key.part
                && found.name == key.name
                && found.clients.is_none_or(|clients| clients == 1)
        };
        let found = figures
            .list()
            .iter()
            .filter(|figure| figure.unit == Unit::Micros && about(&figure.key));
        let points: Vec<_> =
            found.filter_map(|figure| Some((figure.key.tasks?, figure.quantile(50)?))).collect();
        Curve { name, points }
    };
    drawn.into_iter().map(of).filter(|curve| !curve.points.is_empty()).collect()
}

/// One line per point. Ten times the cost is always the same step longer.
pub(super) fn bars(curves: &[Curve]) -> String {
    const LONGEST: f64 = 40.0;
    let (low, high) = range(curves.iter().flat_map(|curve| &curve.points).map(|(_, cost)| *cost));
    let mut text = String::new();
    for curve in curves {
        let _ = writeln!(text, "{} (µs; ten times as much is a fixed step)", curve.name);
        for (tasks, cost) in &curve.points {
            let share = (cost / low).log10() / (high / low).log10();
            let bar = "█".repeat((share * LONGEST).round().max(1.0) as usize);
            let _ = writeln!(
                text,
                "  {:>9} tasks {bar} {}",
                grouped(*tasks),
                grouped(cost.round() as usize)
            );
        }
    }
    text
}

/// The powers of ten that enclose all of `values`.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low > high {
        return (1.0, 10.0);
    }
    let (low, high) = (10_f64.powf(low.log10().floor()), 10_f64.powf(high.log10().ceil()));
    (low, high.max(low * 10.0))
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
/// Colours and dashes of the lines; the dashes are for those who cannot tell the colours apart.
const STYLES: [(&str, &str); 4] =
    [("#0072b2", ""), ("#56b4e9", "2 3"), ("#009e73", "8 4"), ("#d55e00", "10 3 2 3")];

/// A drawing without scripts; both axes are logarithmic.
pub(super) fn svg(curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (fewest, most) = range(points().map(|(tasks, _)| *tasks as f64));
    let (low, high) = range(points().map(|(_, cost)| *cost));
    let x = |tasks: f64| {
        LEFT + (tasks / fewest).log10() / (most / fewest).log10() * (WIDTH - LEFT - RIGHT)
    };
    let y = |cost: f64| {
        HEIGHT - BOTTOM - (cost / low).log10() / (high / low).log10() * (HEIGHT - TOP - BOTTOM)
    };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>What an operation costs by the size of the board</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for cost in powers(low, high) {
        let at = y(cost);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{} µs</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            grouped(cost.round() as usize)
        );
    }
    for tasks in powers(fewest, most) {
        let at = x(tasks);
        let _ = writeln!(
            text,
            "<path d=\"M{at:.1} {TOP}V{}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{}\" \
             text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0,
            grouped(tasks.round() as usize)
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">tasks on the board</text>",
        HEIGHT - 16.0
    );
    for (index, (curve, (colour, dashes))) in curves.iter().zip(STYLES).enumerate() {
        let line: Vec<_> = curve
            .points
            .iter()
            .map(|(tasks, cost)| format!("{:.1},{:.1}", x(*tasks as f64), y(*cost)))
            .collect();
        let stroke = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\""
        );
        let _ = writeln!(text, "<polyline points=\"{}\" {stroke}/>", line.join(" "));
        for point in &line {
            let (x, y) = point.split_once(',').unwrap_or_default();
            let _ = writeln!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let (column, row) = ((index % 2) as f64 * 300.0 + LEFT, (index / 2) as f64 * 18.0 + 20.0);
        let _ = writeln!(
            text,
            "<path d=\"M{column} {row}h28\" {stroke}/><text x=\"{}\" y=\"{}\">{}</text>",
            column + 36.0,
            row + 4.0,
            curve.name
        );
    }
    text + "</svg>\n"
}

fn powers(low: f64, high: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(low), |value| Some(value * 10.0))
        .take_while(move |value| *value <= high * 1.001)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        Curve {
            name: "durable claim",
            points: vec![(100, 200.0), (1_000, 220.0), (100_000, 4_000.0)],
        }
    }

    #[test]
    fn a_drawing_has_every_point_and_no_script() {
        let drawn = svg(&[curve()]);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(
            drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && !drawn.contains("script")
        );
        for text in ["100,000", "10,000 µs", "durable claim"] {
            assert!(drawn.contains(&format!(">{text}<")), "{text}: {drawn}");
        }
        // The cheapest point is the lowest, so its distance from the top is the greatest.
        let heights: Vec<f64> = drawn
            .lines()
            .filter_map(|line| {
                line.strip_prefix("<circle")?.split("cy=\"").nth(1)?.split('"').next()?.parse().ok()
            })
            .collect();
        assert!(heights.is_sorted_by(|one, next| one > next), "{heights:?}");
    }

    #[test]
    fn bars_grow_with_the_cost() {
        let bars = bars(&[curve()]);
        let lengths: Vec<_> = bars.lines().skip(1).map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths.len(), 3);
        assert!(lengths.is_sorted() && lengths[0] < lengths[2], "{bars}");
    }

    #[test]
    fn nothing_can_be_drawn() {
        assert!(svg(&[]).contains("</svg>"));
        assert_eq!(bars(&[]), "");
    }
}
