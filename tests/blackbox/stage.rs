//! One run: starts the crew, carries out the plan, and hands what happened to the judge.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::assignment::PANICKED;
use super::counters::Counters;
use super::crew::{self, Member};
use super::fake_clock::{self, Clocks};
use super::journal::{Entry, Journal};
use super::judge::{self, Verdict};
use super::plan::{Blow, LEASES, Plan, Target};
use super::{Ground, output, timeline};
use crate::support::faults::{Injected, Match};

/// On a busy machine processes take seconds to start.
const LONGEST_START: Duration = Duration::from_secs(30);
/// How long a blow waits for somebody who holds.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What a run leaves for the judge.
pub struct Evidence {
    /// When the plan began, on the journal's clock, as all that follows.
    pub began: Duration,
    pub entries: Vec<Entry>,
    pub faults: Vec<Fault>,
    pub counters: Counters,
    pub clocks: Clocks,
    /// Why workers have panicked.
    pub panics: Vec<String>,
}

/// A fault that has happened: at a moment, or for a while.
#[derive(Clone, Debug)]
pub struct Fault {
    pub from: Duration,
    pub to: Option<Duration>,
    pub worker: usize,
    pub name: &'static str,
}

pub fn run(ground: &Ground, plan: &Plan, number: usize) -> Verdict {
    let folder = Folder::new(ground.name, plan, number);
    let mut ground = ground.clone();
    ground.place = format!("{}-{number}", ground.place);
    let counters = Counters::open(&folder.0);
    let journal = Journal::open(&folder.0.join("journal")).expect("a socket in a folder of our own");
    let mut stage = Stage {
        crew: crew::start(&ground, plan, &folder.0),
        journal,
        folder: folder.0.clone(),
        plan,
        began: Duration::ZERO,
        injected: BTreeMap::new(),
        whom: BTreeMap::new(),
        faults: Vec::new(),
    };
    stage.play();
    let (entries, faults, began) = (stage.journal.entries(), stage.all_faults(), stage.began);
    let clocks = fake_clock::check(&plan.clocks, &entries, stage.journal.epoch);
    let panics = panics(&stage.folder);
    drop(stage);
    let evidence = Evidence { began, entries, faults, counters, clocks, panics };
    let picture = output().join(format!("{}-{}-{}.svg", ground.name, plan.kind, plan.seed));
    let verdict = judge::judge(&ground, plan, &evidence, &picture);
    std::fs::write(&picture, timeline::draw(plan, &evidence, &verdict)).expect("the picture is written");
    verdict
}

fn panics(folder: &Path) -> Vec<String> {
    let files =
        std::fs::read_dir(folder).expect("a folder of the run's own").map(|entry| entry.expect("a file").path());
    let of_panics =
        files.filter(|file| file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(PANICKED)));
    of_panics.map(|file| std::fs::read_to_string(file).expect("a file")).collect()
}

struct Stage<'a> {
    crew: Vec<Member>,
    journal: Journal,
    folder: PathBuf,
    plan: &'a Plan,
    /// When both leases were held for the first time, on the journal's clock.
    began: Duration,
    injected: BTreeMap<usize, Injected>,
    /// Whom a blow has hit, and when.
    whom: BTreeMap<usize, (Duration, Vec<usize>)>,
    faults: Vec<Fault>,
}

/// What is done at a moment, by its number in the plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Recover(usize),
    Open(usize),
    Close(usize),
    Release(usize),
    Hit(usize),
    Heal,
    End,
}

impl Stage<'_> {
    fn play(&mut self) {
        while !LEASES.iter().all(|lease| self.journal.holder(lease).is_some()) && self.journal.now() < LONGEST_START {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.began = self.journal.now();
        for (at, step) in steps(self.plan) {
            std::thread::sleep((self.began + at).saturating_sub(self.journal.now()));
            self.take(step);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Open(number) => {
                let window = &self.plan.windows[number];
                let script = self.crew[window.worker].proxy.on(Match::any());
                let injected = script.rate(window.share, self.plan.seed ^ number as u64).fault(window.fault.clone());
                self.injected.insert(number, injected);
            }
            Step::Close(number) => self.injected[&number].stop(),
            Step::Release(number) => self.injected[&number].release(),
            Step::Hit(number) => self.hit(number),
            Step::Recover(number) => self.recover(number),
            Step::Heal => {
                self.crew.iter().for_each(|member| member.proxy.heal());
                // The workers look for it.
                std::fs::write(self.folder.join("healed"), "").expect("a folder of our own");
            }
            Step::End => {}
        }
    }

    fn hit(&mut self, number: usize) {
        let Blow { at_whom, what, .. } = self.plan.blows[number];
        let whom = match at_whom {
            Target::Worker(worker) => self.whole_from(worker).take(1).collect(),
            Target::Holder(lease) => {
                let holder = self.wait_for_holder(lease).unwrap_or(number % self.crew.len());
                self.whole_from(holder).take(1).collect()
            }
            Target::Everybody => self.whole_from(0).collect::<Vec<_>>(),
        };
        let at = self.journal.now();
        whom.iter().for_each(|worker| self.crew[*worker].hit(what));
        self.whom.insert(number, (at, whom));
    }

    /// Between two holds there is none for a moment.
    fn wait_for_holder(&self, lease: &str) -> Option<usize> {
        let until = self.journal.now() + LONGEST_WAIT;
        loop {
            let holder = self.journal.holder(lease).filter(|holder| self.crew[*holder].hit.is_none());
            if holder.is_some() || self.journal.now() > until {
                return holder;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Those that nothing has hit, from this one on.
    fn whole_from(&self, worker: usize) -> impl Iterator<Item = usize> {
        let count = self.crew.len();
        (worker..worker + count).map(move |worker| worker % count).filter(|worker| self.crew[*worker].hit.is_none())
    }

    fn recover(&mut self, number: usize) {
        let Some((from, whom)) = self.whom.remove(&number) else { return };
        let name = self.plan.blows[number].what.name();
        for worker in whom {
            let to = Some(self.journal.now());
            self.crew[worker].recover();
            self.faults.push(Fault { from, to, worker, name });
        }
    }

    fn all_faults(&self) -> Vec<Fault> {
        let mut faults = self.faults.clone();
        for (worker, member) in self.crew.iter().enumerate() {
            faults.extend(member.proxy.happened().into_iter().map(|happened| Fault {
                from: happened.at.saturating_duration_since(self.journal.began),
                to: None,
                worker,
                name: happened.fault,
            }));
        }
        faults.sort_by_key(|fault| fault.from);
        faults
    }
}

fn steps(plan: &Plan) -> Vec<(Duration, Step)> {
    let mut steps = vec![(plan.heal, Step::Heal), (plan.length, Step::End)];
    for (number, window) in plan.windows.iter().enumerate() {
        let of_window = [(window.from, Step::Open(number)), (window.to, Step::Close(number))];
        steps.extend(of_window.into_iter().chain([(window.release, Step::Release(number))]));
    }
    for (number, blow) in plan.blows.iter().enumerate() {
        steps.extend([(blow.at, Step::Hit(number)), (blow.ends, Step::Recover(number))]);
    }
    steps.sort();
    steps
}

/// A folder of this run's own. Short, because a socket's path has 108 bytes at the most.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, plan: &Plan, number: usize) -> Self {
        let own = format!("leasehold-{name}-{}-{number}-{}", plan.kind, std::process::id());
        let folder = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
