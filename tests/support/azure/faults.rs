//! What happens to a request on its way, by script.

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::Fake;
use super::http::{Call, Op};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection is made: the client knows that nothing was sent.
    RefuseConnection,
    /// It never arrives; the client sees a broken connection.
    LoseRequest,
    /// It is applied; the client sees a broken connection.
    LoseAnswer,
    /// The client sees a broken connection at once; it is applied so much later.
    ApplyLate(Duration),
    /// It arrives so much later, if its client still waits.
    Delay(Duration),
    /// It is applied, and answered so much later.
    AnswerLate(Duration),
    /// It is applied and answered, and a second copy is applied so much later.
    Twice(Duration),
    /// It never arrives and is never answered.
    Hang,
    /// It is applied and never answered.
    ApplyThenHang,
    /// The service refuses it with this status and code. It is not applied.
    Answer(u16, &'static str),
    /// It is applied, and the service answers with this status: whether it was applied is not known.
    ApplyThen(u16),
    /// A proxy answers 502 of its own: without the service's request id, and with a clock that is an hour ahead.
    AnswerForeign,
    /// A proxy answers with this status of its own.
    AnswerForeignStatus(u16),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    NotConnected,
    Lost,
}

/// A point at which requests stop until they are let go on. Dropped, it lets all go on.
#[derive(Debug)]
pub struct Gate(Stop);

/// A fault or a hook being scripted.
#[derive(Debug)]
pub struct On<'a> {
    rules: &'a Rules,
    op: Op,
    name: Option<String>,
    skip: usize,
    times: usize,
}

/// How often something has happened.
#[derive(Clone, Debug)]
pub struct Happened(Arc<AtomicUsize>);

/// Everything that is scripted.
#[derive(Debug, Default)]
pub struct Rules(Mutex<Vec<Rule>>);

/// What is to happen to one request, in this order.
#[derive(Debug, Default)]
pub struct Plan {
    pub before: Vec<Act>,
    pub fault: Option<Fault>,
    pub after: Vec<Act>,
}

#[derive(Clone)]
pub enum Act {
    Hook(Hook),
    Stop(Stop),
}

pub type Hook = Arc<Mutex<dyn FnMut(&Fake) + Send>>;

#[derive(Clone, Debug)]
pub struct Stop {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

#[derive(Debug)]
struct Rule {
    op: Op,
    name: Option<String>,
    skip: usize,
    left: usize,
    what: What,
    happened: Arc<AtomicUsize>,
}

#[derive(Clone, Debug)]
enum What {
    Fault(Fault),
    Before(Act),
    After(Act),
}

impl On<'_> {
    /// Only requests for this blob, or container.
    pub fn of(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Lets so many requests through first.
    pub fn after(mut self, requests: usize) -> Self {
        self.skip = requests;
        self
    }

    /// So many requests; one if it is not said.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// All requests from then on.
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    pub fn fault(self, fault: Fault) -> Happened {
        self.rule(What::Fault(fault))
    }

    /// A rival acts before the request is applied, whatever happens to it.
    pub fn before(self, rival: impl FnMut(&Fake) + Send + 'static) -> Happened {
        self.rule(What::Before(Act::Hook(Arc::new(Mutex::new(rival)))))
    }

    /// A rival acts when the request has been applied, or lost, and before it is answered.
    pub fn then(self, rival: impl FnMut(&Fake) + Send + 'static) -> Happened {
        self.rule(What::After(Act::Hook(Arc::new(Mutex::new(rival)))))
    }

    /// The request stops before it is applied.
    pub fn pause_before(self) -> Gate {
        let stop = Stop::new();
        self.rule(What::Before(Act::Stop(stop.clone())));
        Gate(stop)
    }

    /// The request stops when it has been applied, or lost, and before it is answered.
    pub fn pause_after(self) -> Gate {
        let stop = Stop::new();
        self.rule(What::After(Act::Stop(stop.clone())));
        Gate(stop)
    }

    fn rule(self, what: What) -> Happened {
        let happened = Arc::new(AtomicUsize::new(0));
        let Self { rules, op, name, skip, times: left } = self;
        let rule = Rule { op, name, skip, left, what, happened: Arc::clone(&happened) };
        rules.0.lock().unwrap().push(rule);
        Happened(happened)
    }
}

impl Gate {
    /// Waits until a request has come here that was not waited for yet.
    pub async fn reached(&self) {
        self.0.reached.acquire().await.unwrap().forget();
    }

    /// Lets one request go on.
    pub fn open(&self) {
        self.0.open.add_permits(1);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.open.close();
    }
}

impl Happened {
    pub fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Rules {
    pub fn on(&self, op: Op) -> On<'_> {
        On { rules: self, op, name: None, skip: 0, times: 1 }
    }

    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Every hook that is for this request, and the first fault.
    pub fn plan(&self, call: &Call) -> Plan {
        let mut plan = Plan::default();
        for rule in self.0.lock().unwrap().iter_mut().filter(|rule| rule.is_for(call)) {
            if plan.fault.is_some() && matches!(rule.what, What::Fault(_)) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            rule.left -= 1;
            rule.happened.fetch_add(1, Ordering::SeqCst);
            match rule.what.clone() {
                What::Fault(fault) => plan.fault = Some(fault),
                What::Before(act) => plan.before.push(act),
                What::After(act) => plan.after.push(act),
            }
        }
        plan
    }
}

impl Rule {
    fn is_for(&self, call: &Call) -> bool {
        self.op == call.op && self.left > 0 && self.name.as_ref().is_none_or(|only| *only == call.name)
    }
}

impl Act {
    pub async fn perform(&self, fake: &Fake) {
        match self {
            Act::Hook(hook) => (*hook.lock().unwrap())(fake),
            Act::Stop(stop) => {
                stop.reached.add_permits(1);
                if let Ok(permit) = stop.open.acquire().await {
                    permit.forget();
                }
            }
        }
    }
}

impl Debug for Act {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Hook(_) => "Hook",
            Act::Stop(_) => "Stop",
        })
    }
}

impl Stop {
    fn new() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }
}
