//! Lines over load as SVG: goodput, and the 99th percentile on a logarithmic axis.

use std::fmt::Write;

use super::policy_run::Run;

/// Colours that can be told apart by people who see few, on light and on dark ground, with dashes
/// for the later ones, since lines that lie on each other are the good ones.
const LOOKS: [(&str, &str); 7] = [
    ("#d55e00", "none"),
    ("#cc8a1d", "none"),
    ("#9a8f00", "none"),
    ("#3a9ad9", "none"),
    ("#7b61c9", "14 6"),
    ("#009e73", "6 8"),
    ("#cc6fa3", "2 4"),
];

const PANEL: (f64, f64) = (330.0, 250.0);
const LEFT: f64 = 62.0;
const TOP: f64 = 40.0;
const GAP: f64 = 84.0;

const STYLE: &str = "\
  <style>
    svg { font: 12px system-ui, sans-serif; background: #ffffff; }
    text { fill: #222222; } .quiet { fill: #666666; } .title { font-weight: 600; font-size: 13px; }
    .grid { stroke: #dddddd; } .axis { stroke: #888888; } .line { fill: none; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      svg { background: #16181c; } text { fill: #e6e6e6; } .quiet { fill: #a0a0a0; }
      .grid { stroke: #33363c; } .axis { stroke: #777777; }
    }
  </style>
";

/// Range of an axis, and the places of its marks.
struct Axis {
    from: f64,
    to: f64,
    marks: Vec<f64>,
    is_log: bool,
}

impl Axis {
    /// From 0 to a round number above the largest value.
    fn linear(largest: f64) -> Self {
        let rough = (largest.max(1e-9)) / 4.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|times| times * power);
        let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
        let count = (largest / step - 1e-9).ceil().max(1.0) as usize;
        let marks: Vec<_> = (0..=count).map(|mark| mark as f64 * step).collect();
        Self { from: 0.0, to: count as f64 * step, marks, is_log: false }
    }

    /// Whole powers of ten around the values.
    fn log(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least.max(1e-3) } else { 1.0 };
        let largest = values.fold(least, f64::max);
        let first = least.log10().floor() as i32;
        let last = (largest.log10().ceil() as i32).max(first + 1);
        let marks: Vec<_> = (first..=last).map(|power| 10f64.powi(power)).collect();
        Self { from: marks[0], to: marks[marks.len() - 1], marks, is_log: true }
    }

    /// The place of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        share.clamp(0.0, 1.0)
    }
}

/// Two panels beside each other and the policies' names below.
pub(super) fn svg(runs: &[Run], capacity: f64) -> String {
    let mut names: Vec<&str> = runs.iter().map(|run| run.policy.as_str()).collect();
    names.dedup();
    let largest_load = runs.iter().map(|run| run.load).fold(0.0, f64::max);
    let x = Axis::linear(largest_load);
    let goodput = |run: &Run| run.outcome.goodput / capacity;
    let p99 = |run: &Run| run.outcome.p99_ms;
    let legend = TOP + PANEL.1 + 56.0;
    let (width, height) =
        (LEFT + 2.0 * PANEL.0 + GAP + 24.0, legend + 20.0 * names.len().div_ceil(2) as f64 + 6.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n  \
         <title>Goodput and 99th percentile over offered load</title>\n{STYLE}"
    );
    let largest = runs.iter().map(goodput).fold(0.0, f64::max).max(1.0);
    let y = Axis::linear(largest);
    panel(&mut svg, LEFT, "answered in time, of capacity", &x, &y, runs, &names, &goodput);
    // Where nothing was answered there is no percentile.
    let answered = runs.iter().map(p99).filter(|ms| *ms > 0.0);
    let y = Axis::log(answered.collect::<Vec<_>>().into_iter());
    let left = LEFT + PANEL.0 + GAP;
    panel(&mut svg, left, "99th percentile of answers, ms", &x, &y, runs, &names, &p99);
    for (place, name) in names.iter().enumerate() {
        let x = LEFT + (place % 2) as f64 * (PANEL.0 + GAP);
        let y = legend + 20.0 * (place / 2) as f64;
        let (colour, dashes) = look(place);
        let (end, text, base) = (x + 28.0, x + 36.0, y + 4.0);
        let _ = writeln!(
            svg,
            "  <line class=\"line\" x1=\"{x}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"/>\n  \
             <text x=\"{text}\" y=\"{base}\">{}</text>",
            escaped(name)
        );
    }
    svg + "</svg>\n"
}

fn look(place: usize) -> (&'static str, &'static str) {
    LOOKS[place % LOOKS.len()]
}

#[expect(clippy::too_many_arguments, reason = "a panel is drawn from all of them, here alone")]
fn panel(
    svg: &mut String,
    left: f64,
    title: &str,
    x: &Axis,
    y: &Axis,
    runs: &[Run],
    names: &[&str],
    value: &dyn Fn(&Run) -> f64,
) {
    let across = |load: f64| left + PANEL.0 * x.share(load);
    let down = |value: f64| TOP + PANEL.1 * (1.0 - y.share(value));
    let (right, bottom) = (left + PANEL.0, TOP + PANEL.1);
    let _ =
        writeln!(svg, "  <text class=\"title\" x=\"{left}\" y=\"{}\">{title}</text>", TOP - 16.0);
    for &mark in &y.marks {
        let (at, text) = (down(mark), left - 8.0);
        let _ = writeln!(
            svg,
            "  <line class=\"grid\" x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>\n  \
             <text class=\"quiet\" x=\"{text}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            at + 4.0,
            number(mark)
        );
    }
    for &mark in &x.marks {
        let (at, text) = (across(mark), bottom + 18.0);
        let _ = writeln!(
            svg,
            "  <text class=\"quiet\" x=\"{at:.1}\" y=\"{text}\" text-anchor=\"middle\">{}</text>",
            number(mark)
        );
    }
    let middle = left + PANEL.0 / 2.0;
    let _ = writeln!(
        svg,
        "  <line class=\"axis\" x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\n  \
         <text class=\"quiet\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">offered load, of capacity</text>",
        bottom + 36.0
    );
    for (place, name) in names.iter().enumerate() {
        let (colour, dashes) = look(place);
        let mut points: Vec<_> = runs
            .iter()
            .filter(|run| run.policy == *name && (!y.is_log || value(run) > 0.0))
            .map(|run| (across(run.load), down(value(run))))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "  <polyline class=\"line\" points=\"{}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            let _ =
                writeln!(svg, "  <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }
}

/// A mark's number without digits that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" => "0".to_owned(),
        text => text.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let marks = |largest| Axis::linear(largest).marks;
        assert_eq!(marks(2.0), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(marks(1.05), [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(Axis::log([140.0, 20_000.0].into_iter()).marks, [100.0, 1e3, 1e4, 1e5]);
        assert_eq!(Axis::log(std::iter::empty()).marks, [1.0, 10.0]);
        assert_eq!([0.5, 0.0, 10.0, 1000.0].map(number), ["0.5", "0", "10", "1000"]);
    }
}
