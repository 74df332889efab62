//! Arrivals: Poisson, with bursts, over prompts of a power law.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::job::{Class, Micros, Shape};

/// Request of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Time of arrival.
    pub at: Micros,
    /// Time from arrival to deadline.
    pub within: Micros,
    /// Class of service.
    pub class: Class,
    /// The work wanted.
    pub shape: Shape,
    /// Actual over predicted time.
    pub noise: f64,
}

/// Times of more arrivals than on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// A burst begins as often as this.
    pub every: Micros,
    /// Length of a burst.
    pub lasts: Micros,
    /// Rate in a burst over the mean rate. Between bursts it is lower, so that the mean holds.
    pub times: f64,
}

impl Default for Bursts {
    /// 2.5 times the rate in 2 s of every 10.
    fn default() -> Self {
        Self { every: Micros(10_000_000), lasts: Micros(2_000_000), times: 2.5 }
    }
}

impl Bursts {
    /// Rate over mean rate at a time, in microseconds, and the time at which it changes.
    fn rate(&self, at: f64) -> (f64, f64) {
        let [every, lasts] = [self.every, self.lasts].map(|micros| micros.0 as f64);
        let begun = (at / every).floor() * every;
        match at < begun + lasts {
            true => (self.times, begun + lasts),
            false => ((every - lasts * self.times).max(0.0) / (every - lasts), begun + every),
        }
    }
}

/// Random requests of one kind of service.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Requests a second, on average.
    pub rate: f64,
    /// The number of requests.
    pub requests: usize,
    /// Bursts, if any.
    pub bursts: Option<Bursts>,
    /// Prompt tokens: a power law from the first to the second, with density `T^−(1 + tail)`.
    pub tokens: (u32, u32),
    /// The power law's exponent. Above 0; 1.1 from 8 to 512 has median 15 and 99th percentile 277.
    pub tail: f64,
    /// Decode passes.
    pub passes: u32,
    /// Rows of each pass.
    pub beam: u32,
    /// Times to the deadline, each as likely as the others.
    pub within: Vec<Micros>,
    /// Standard deviation of the logarithm of actual over predicted time, whose mean is 1.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
}

impl Default for Traffic {
    /// Beam 128 over three levels, a deadline of 200 ms, 20% noise.
    fn default() -> Self {
        Self {
            rate: 20.0,
            requests: 12_000,
            bursts: None,
            tokens: (8, 512),
            tail: 1.1,
            passes: 2,
            beam: 128,
            within: vec![Micros(200_000)],
            noise: 0.2,
            seed: 1,
        }
    }
}

impl Traffic {
    /// The requests, in order of arrival. Those of another rate are the same ones, at other times.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut gaps = Draws::new(self.seed, 0);
        let mut sizes = Draws::new(self.seed, 1);
        let mut deadlines = Draws::new(self.seed, 3);
        let mut at = 0.0;
        let arrival = |_| {
            at = self.later(at, -gaps.uniform().ln());
            let prompt_tokens = self.prompt_tokens(sizes.uniform());
            let within = match self.within.len() {
                0 => Micros::NEVER,
                many => self.within[(deadlines.uniform() * many as f64) as usize % many],
            };
            let (passes, widest) = (self.passes, self.beam);
            let rows = widest.saturating_mul(passes);
            let shape = Shape { prompt_tokens, passes, rows, widest, ..Shape::default() };
            Arrival { at: Micros(at as u64), within, class: Class::Interactive, shape, noise: 1.0 }
        };
        let mut arrivals: Vec<_> = (0..self.requests).map(arrival).collect();
        draw_noise(&mut arrivals, self.noise, self.seed);
        arrivals
    }

    /// The time, in microseconds, until which so many arrivals are expected from `at` on.
    fn later(&self, mut at: f64, mut expected: f64) -> f64 {
        let rate = self.rate.max(f64::MIN_POSITIVE) / 1e6;
        let Some(bursts) = self.bursts else { return at + expected / rate };
        loop {
            let (times, until) = bursts.rate(at);
            let here = rate * times * (until - at);
            if expected <= here {
                return at + expected / (rate * times);
            }
            // Where rounding leaves no time until the change, the next one comes.
            expected -= here;
            at = until.max(at + 1.0);
        }
    }

    /// The inverse of the power law's distribution function.
    fn prompt_tokens(&self, share: f64) -> u32 {
        let (least, most) = (f64::from(self.tokens.0.max(1)), f64::from(self.tokens.1.max(1)));
        let spread = 1.0 - (least / most).powf(self.tail);
        (least * (1.0 - share * spread).powf(-1.0 / self.tail)) as u32
    }
}

/// Draws actual over predicted time of every request: lognormal with mean 1, by the standard
/// deviation of its logarithm.
pub fn draw_noise(arrivals: &mut [Arrival], deviation: f64, seed: u64) {
    let mut draws = Draws::new(seed, 2);
    for arrival in arrivals {
        arrival.noise = (deviation * draws.normal() - deviation * deviation / 2.0).exp();
    }
}

/// Random numbers of one purpose.
struct Draws(ChaCha8Rng);

impl Draws {
    fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// Above 0 and below 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Box and Muller's transform of two uniform numbers.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
