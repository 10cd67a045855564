//! A picture of a run: who held, with which token, and where the faults were.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use super::holds::{Hold, holds};
use super::judge::Verdict;
use super::plan::{LEASES, PERMITS, Plan, SEMAPHORE};
use super::stage::{Evidence, Fault};

const LEFT: f64 = 90.0;
const WIDTH: f64 = 1500.0;
const TOP: f64 = 64.0;
const LANE: f64 = 120.0;
const BAR: f64 = 24.0;
const ROW: f64 = BAR + 4.0;
/// Of the holds of the counter, the leader, and the semaphore's permits.
const COLOURS: [&str; 3] = ["#6abf69", "#f0c23c", "#b48ad6"];
/// Faults on the way that are closer together are one mark.
const GRAIN: Duration = Duration::from_millis(120);

/// What a fault looks like, and the names that share it.
const MARKS: [(&str, &str, &[&str]); 5] = [
    (
        "#d62728",
        "answer lost, truncated or an error though applied",
        &["answer lost", "answer truncated", "applied, error answered"],
    ),
    ("#ff7f0e", "request lost or an error", &["request lost", "error answered"]),
    ("#9467bd", "held and then forwarded", &["request held", "reset, request held", "answer held"]),
    ("#1f77b4", "duplicated", &["duplicated", "duplicated late"]),
    ("#000000", "stalled", &["stalled"]),
];
const BANDS: [(&str, &str); 3] = [("killed", "#e8a0a0"), ("frozen", "#a9cfee"), ("partitioned", "#d8d8d8")];

pub fn draw(plan: &Plan, evidence: &Evidence, verdict: &Verdict) -> String {
    let scale = (WIDTH - LEFT - 20.0) / plan.length.as_secs_f64();
    let mut picture = Picture { svg: String::new(), scale, began: evidence.began };
    let bottom = TOP + LANE * plan.workers as f64;
    picture.head(bottom + 84.0, &format!("{}, seed {}", verdict.name, plan.seed), &summary(verdict));
    for worker in 0..plan.workers {
        picture.lane(worker, plan.length);
        evidence.faults.iter().filter(|fault| fault.worker == worker).for_each(|fault| picture.band(fault));
    }
    picture.seconds(plan.length, bottom);
    for hold in holds(&evidence.entries) {
        picture.bar(&hold);
    }
    picture.marks(&evidence.faults);
    picture.legend(bottom + 32.0);
    picture.svg.push_str("</svg>\n");
    picture.svg
}

fn summary(verdict: &Verdict) -> String {
    let violations = match verdict.violations.len() {
        0 => "no violation".to_owned(),
        some => format!("{some} violations"),
    };
    format!(
        "term {} s; {} grants, {} takeovers, {} stale writes refused; the unguarded counter lost {} of {}, the fenced \
         one {} of {}; {violations}",
        verdict.options.ttl_ms as f64 / 1000.0,
        verdict.grants,
        verdict.takeovers,
        verdict.stale_refused,
        verdict.unguarded.1,
        verdict.unguarded.0,
        verdict.fenced.1,
        verdict.fenced.0
    )
}

struct Picture {
    svg: String,
    scale: f64,
    /// What lies before is drawn there.
    began: Duration,
}

impl Picture {
    fn head(&mut self, height: f64, title: &str, summary: &str) {
        let size = format!("viewBox='0 0 {WIDTH} {height}'");
        let style = "font-family='sans-serif' font-size='11'";
        let _ = writeln!(self.svg, "<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>");
        self.rect(0.0, 0.0, WIDTH, height, "fill='white'");
        self.text(12.0, 22.0, "font-size='16' font-weight='bold'", title);
        self.text(12.0, 42.0, "", summary);
    }

    fn x(&self, at: Duration) -> f64 {
        LEFT + at.saturating_sub(self.began).as_secs_f64() * self.scale
    }

    fn text(&mut self, x: f64, y: f64, style: &str, text: &str) {
        let _ = writeln!(self.svg, "<text x='{x:.0}' y='{y:.0}' {style}>{text}</text>");
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: &str) {
        let _ = writeln!(self.svg, "<rect x='{x:.1}' y='{y:.0}' width='{width:.1}' height='{height:.0}' {style}/>");
    }

    fn lane(&mut self, worker: usize, length: Duration) {
        let y = TOP + LANE * worker as f64;
        self.text(12.0, y + 20.0, "font-weight='bold'", &format!("worker {worker}"));
        for (row, lease) in LEASES.iter().chain([&SEMAPHORE]).enumerate() {
            self.text(24.0, y + 36.0 + ROW * row as f64, "fill='#555'", lease);
        }
        self.text(24.0, y + 114.0, "fill='#555'", "faults");
        let width = self.x(self.began + length) - LEFT;
        self.rect(LEFT, y + 18.0, width, LANE - 20.0, "fill='#f7f7f7'");
    }

    fn seconds(&mut self, length: Duration, bottom: f64) {
        for second in (0..=length.as_secs()).step_by(5) {
            let x = self.x(self.began + Duration::from_secs(second));
            let _ = writeln!(self.svg, "<path d='M{x:.1} {TOP}V{bottom}' stroke='#ccc' stroke-width='.6'/>");
            self.text(x - 6.0, bottom + 14.0, "fill='#555'", &format!("{second} s"));
        }
    }

    /// A fault that lasts.
    fn band(&mut self, fault: &Fault) {
        let (Some(to), Some((_, colour))) = (fault.to, BANDS.iter().find(|(name, _)| *name == fault.name)) else {
            return;
        };
        let (x, y) = (self.x(fault.from), TOP + LANE * fault.worker as f64);
        let width = self.x(to) - x;
        self.rect(x, y + 6.0, width, LANE - 8.0, &format!("fill='{colour}'"));
        self.text(x + 1.0, y + 15.0, "font-size='9'", fault.name);
    }

    fn bar(&mut self, hold: &Hold) {
        let row = LEASES.iter().position(|lease| *lease == hold.lease);
        let Some((y, height, colour)) = row.map(|row| (ROW * row as f64, BAR, COLOURS[row])).or_else(|| {
            // The permits share a row.
            let permit = PERMITS.iter().position(|permit| *permit == hold.lease)?;
            let (row, half) = (LEASES.len(), BAR / PERMITS.len() as f64);
            Some((ROW * row as f64 + half * permit as f64, half, COLOURS[row]))
        }) else {
            return;
        };
        let (x, y) = (self.x(hold.from), TOP + LANE * hold.worker as f64 + 20.0 + y);
        let width = (self.x(hold.to.unwrap_or(hold.from)) - x).max(1.0);
        let stroke = if hold.stale > 0 { " stroke='#d00' stroke-width='2'" } else { "" };
        self.rect(x, y, width, height, &format!("fill='{colour}'{stroke}"));
        // The tokens of a lease that begin as high as a clock differ in their last digits.
        let token = if hold.token < 100_000 { hold.token.to_string() } else { format!("{:05}", hold.token % 100_000) };
        if width > token.len() as f64 * 5.5 && height == BAR {
            self.text(x + 1.5, y + 16.0, "font-size='9'", &token);
        }
    }

    fn marks(&mut self, faults: &[Fault]) {
        let mut drawn = BTreeSet::new();
        for fault in faults {
            let Some(kind) = MARKS.iter().position(|(_, _, names)| names.contains(&fault.name)) else { continue };
            let slot = fault.from.as_millis() / GRAIN.as_millis();
            if drawn.insert((fault.worker, kind, slot)) {
                let (x, y) = (self.x(fault.from), TOP + LANE * fault.worker as f64 + 106.0);
                self.rect(x, y, 2.0, 11.0, &format!("fill='{}'", MARKS[kind].0));
            }
        }
    }

    fn legend(&mut self, y: f64) {
        let mut x = LEFT;
        let names = ["held: counter (number: the last digits of the token)", "held: leader", "held: permits"];
        let leases = COLOURS.into_iter().zip(names);
        let bands = BANDS.map(|(name, colour)| (colour, name));
        for (colour, name) in leases.into_iter().chain(bands).chain([("#d00", "framed: a stale write was refused")]) {
            self.rect(x, y, 12.0, 12.0, &format!("fill='{colour}'"));
            self.text(x + 16.0, y + 10.0, "", name);
            x += 40.0 + name.len() as f64 * 6.2;
        }
        let mut x = LEFT;
        for (colour, name, _) in MARKS {
            self.rect(x, y + 22.0, 3.0, 12.0, &format!("fill='{colour}'"));
            self.text(x + 8.0, y + 32.0, "", name);
            x += 40.0 + name.len() as f64 * 6.2;
        }
    }
}
