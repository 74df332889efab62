//! Plot of curves over the rate that was offered, as SVG: goodput above, p99 below.

use std::fmt::Write;

/// Measured or predicted figures of several rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Legend.
    pub name: String,
    /// In any order.
    pub points: Vec<Point>,
    /// True for a broken line without marks, as predictions have.
    pub is_dashed: bool,
}

/// Figures of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests a second that were offered.
    pub rate: f64,
    /// Answers a second that came in time.
    pub goodput: f64,
    /// The 99th percentile of the answers' latency, where there were answers.
    pub p99_ms: Option<f64>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const PANEL: f64 = 260.0;
/// Tops of the two panels.
const TOPS: [f64; 2] = [50.0, 370.0];
/// The legend's first row, below the panels, and the way to the next.
const LEGEND: f64 = 700.0;
const ROW: f64 = 20.0;
const COLUMNS: usize = 3;
/// Told apart with any sight (Okabe and Ito's palette).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Draws curves; figures that are not finite or not above 0 where the axis is logarithmic are left
/// out.
///
/// The grey line of the upper panel is everything in time; that of the lower one is the deadline.
/// Latencies have a logarithmic axis.
pub fn plot(title: &str, curves: &[Curve], deadline_ms: Option<f64>) -> String {
    let figures = || curves.iter().flat_map(|curve| &curve.points);
    let most =
        |of: fn(&Point) -> f64| figures().map(of).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let rates = Axis::linear(most(|p| p.rate), [LEFT, WIDTH - RIGHT]);
    let goodputs = Axis::linear(most(|p| p.goodput), [TOPS[0] + PANEL, TOPS[0]]);
    let latencies = figures().filter_map(|point| point.p99_ms).chain(deadline_ms);
    let latencies = Axis::logarithmic(latencies, [TOPS[1] + PANEL, TOPS[1]]);

    let rows = curves.len().div_ceil(COLUMNS) as f64;
    let height = LEGEND + rows * ROW;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{}</text>"#,
        escaped(title)
    );
    for (place, curve) in curves.iter().enumerate() {
        let (column, row) = ((place % COLUMNS) as f64, (place / COLUMNS) as f64);
        let (x, y) = (LEFT + column * (WIDTH - LEFT) / COLUMNS as f64, LEGEND + row * ROW);
        let (colour, dash) = (COLOURS[place % COLOURS.len()], dash(curve));
        let _ = writeln!(
            svg,
            r#"<path d="M{x} {y}h24" stroke="{colour}" stroke-width="2"{dash}/><text x="{}" y="{}">{}</text>"#,
            x + 30.0,
            y + 4.0,
            escaped(&curve.name)
        );
    }
    panel(&mut svg, TOPS[0], "in time, requests a second", &rates, &goodputs);
    panel(&mut svg, TOPS[1], "p99 of answers, ms", &rates, &latencies);
    let _ = writeln!(
        svg,
        r#"<text x="{}" y="{}" text-anchor="middle">offered, requests a second</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        TOPS[1] + PANEL + 40.0
    );
    let all_in_time = rates.last.min(goodputs.last);
    for (from, to) in [
        Some(((0.0, goodputs.at(0.0)), (all_in_time, goodputs.at(all_in_time)))),
        deadline_ms.map(|ms| ((0.0, latencies.at(ms)), (rates.last, latencies.at(ms)))),
    ]
    .into_iter()
    .flatten()
    {
        let _ = writeln!(
            svg,
            r##"<path d="M{:.1} {:.1}L{:.1} {:.1}" stroke="#999" stroke-dasharray="2 3"/>"##,
            rates.at(from.0),
            from.1,
            rates.at(to.0),
            to.1
        );
    }
    for (place, curve) in curves.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let mut points = curve.points.clone();
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        line(
            &mut svg,
            curve,
            colour,
            points.iter().map(|p| (rates.at(p.rate), goodputs.at(p.goodput))),
        );
        let of_latency =
            points.iter().filter_map(|p| Some((rates.at(p.rate), latencies.at(p.p99_ms?))));
        line(&mut svg, curve, colour, of_latency);
    }
    svg + "</svg>\n"
}

fn dash(curve: &Curve) -> &'static str {
    if curve.is_dashed { r#" stroke-dasharray="6 4""# } else { "" }
}

fn line(svg: &mut String, curve: &Curve, colour: &str, points: impl Iterator<Item = (f64, f64)>) {
    let points: Vec<(f64, f64)> = points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"{}/>"#,
        list.join(" "),
        dash(curve)
    );
    for (x, y) in points.iter().filter(|_| !curve.is_dashed) {
        let _ = writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#);
    }
}

/// A frame with ticks on both axes.
fn panel(svg: &mut String, top: f64, what: &str, across: &Axis, up: &Axis) {
    let bottom = top + PANEL;
    let _ = writeln!(
        svg,
        r##"<path d="M{LEFT} {top}V{bottom}H{}" fill="none" stroke="#333"/>
<text x="{LEFT}" y="{}" fill="#333">{what}</text>"##,
        WIDTH - RIGHT,
        top - 4.0
    );
    for tick in &up.ticks {
        let y = up.at(*tick);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {y:.1}H{}" stroke="#eee"/><text x="{}" y="{:.1}" text-anchor="end">{tick}</text>"##,
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    for tick in &across.ticks {
        let x = across.at(*tick);
        let _ = writeln!(
            svg,
            r##"<path d="M{x:.1} {bottom}v5" stroke="#333"/><text x="{x:.1}" y="{}" text-anchor="middle">{tick}</text>"##,
            bottom + 18.0
        );
    }
}

/// A scale from values to places.
struct Axis {
    is_logarithmic: bool,
    first: f64,
    last: f64,
    places: [f64; 2],
    ticks: Vec<f64>,
}

impl Axis {
    /// From 0 to a little beyond the largest value, with at most 10 ticks of 1, 2 or 5 times a
    /// power of ten.
    fn linear(most: f64, places: [f64; 2]) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let power = 10_f64.powi(most.log10().floor() as i32 - 1);
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].map(|times| times * power);
        let step = steps.into_iter().find(|step| most / step <= 9.0).unwrap_or(most);
        let count = (most / step).ceil();
        let ticks = (0..=count as u32).map(|tick| rounded(f64::from(tick) * step)).collect();
        Self { is_logarithmic: false, first: 0.0, last: count * step, places, ticks }
    }

    /// Between the 1, 2 or 5 times a power of ten below the least value and above the largest; few
    /// ticks where that is far.
    fn logarithmic(values: impl Iterator<Item = f64>, places: [f64; 2]) -> Self {
        let values: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let (least, most) = match least.is_finite() {
            true => (least, values.iter().copied().fold(0.0, f64::max)),
            false => (1.0, 10.0),
        };
        let powers = least.log10().floor() as i32..=most.log10().floor() as i32 + 1;
        let all: Vec<f64> = powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|times| rounded(times * 10_f64.powi(power))))
            .collect();
        let first = all.iter().copied().rfind(|tick| *tick <= least).unwrap_or(all[0]);
        let last = all.iter().copied().find(|tick| *tick >= most && *tick > first);
        let last = last.unwrap_or(all[all.len() - 1]);
        let within = all.into_iter().filter(|tick| (first..=last).contains(tick));
        let mut ticks: Vec<f64> = within.collect();
        if ticks.len() > 12 {
            ticks.retain(|tick| (tick.log10() - tick.log10().round()).abs() < 1e-9);
        }
        Self { is_logarithmic: true, first, last, places, ticks }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.first).ln() / (self.last / self.first).ln(),
            false => (value - self.first) / (self.last - self.first),
        };
        self.places[0] + share * (self.places[1] - self.places[0])
    }
}

/// A tick without the last bits of its computation: `0.30000000000000004` is 0.3.
fn rounded(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            // No control character may stand in XML.
            c if c.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64, Option<f64>)]) -> Curve {
        let points = points.iter().map(|&(rate, goodput, p99_ms)| Point { rate, goodput, p99_ms });
        Curve { name: "a <b> & c\u{1b}".into(), points: points.collect(), is_dashed: false }
    }

    /// Every number in it is finite and within the drawing.
    #[track_caller]
    fn check(curves: &[Curve], deadline: Option<f64>) -> String {
        let svg = plot("t", curves, deadline);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        for circle in svg.lines().filter(|line| line.starts_with("<circle")) {
            let number = |name: &str| -> f64 {
                let rest = circle.split_once(&format!("{name}=\"")).unwrap().1;
                rest.split_once('"').unwrap().0.parse().unwrap()
            };
            assert!((LEFT..=WIDTH - RIGHT).contains(&number("cx")), "{circle}");
            assert!((TOPS[0]..=TOPS[1] + PANEL).contains(&number("cy")), "{circle}");
        }
        svg
    }

    #[test]
    fn every_figure_has_its_place() {
        let rates = [(50.0, 49.5, Some(12.0)), (25.0, 25.0, Some(8.0)), (100.0, 0.0, None)];
        let svg = check(&[curve(&rates)], Some(200.0));
        assert_eq!(svg.matches("<circle").count(), 5);
        assert!(svg.contains("a &lt;b&gt; &amp; c\u{fffd}"));
        // Sorted by rate: from left to right.
        let line = svg.lines().find(|line| line.starts_with("<polyline")).unwrap();
        let points = line.split('"').nth(1).unwrap().split(' ');
        let across: Vec<f64> =
            points.map(|p| p.split(',').next().unwrap().parse().unwrap()).collect();
        assert!(across.is_sorted() && across.len() == 3, "{across:?}");
    }

    #[test]
    fn figures_at_the_edges() {
        check(&[], None);
        let many = check(&vec![curve(&[(1.0, 1.0, Some(1.0))]); 20], None);
        assert!(many.contains("height=\"840\""), "a legend of seven rows");
        check(&[curve(&[])], Some(1.0));
        check(&[curve(&[(1e-9, 1e-9, Some(1e-6)), (1e5, 1e5, Some(1e9))])], None);
        check(&[curve(&[(f64::NAN, f64::INFINITY, Some(f64::NAN)), (1.0, 0.0, Some(0.0))])], None);
        for value in [0.3, 1.0, 9.99, 10.0, 42.0, 99_999.0] {
            let axis = Axis::linear(value, [0.0, 1.0]);
            assert!(axis.last >= value && axis.last <= 2.0 * value + 1e-9, "{value} {}", axis.last);
            assert!((3..=11).contains(&axis.ticks.len()), "{value} {:?}", axis.ticks);
            let axis = Axis::logarithmic([value].into_iter(), [0.0, 1.0]);
            assert!(axis.first <= value && value <= axis.last, "{value}");
        }
    }
}
