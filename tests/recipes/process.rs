//! A process within a test: killed, frozen and cut off as a real one is, seen from its store and its work.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use leasehold::Leases;
use tokio::task::JoinHandle;

use super::way::{Mode, Way};

pub struct Process {
    pub leases: Leases,
    pub way: Way,
    frozen: Arc<Frozen>,
    tasks: Mutex<Vec<tokio::task::AbortHandle>>,
}

#[derive(Default)]
struct Frozen {
    is: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Process {
    pub fn new(leases: Leases, way: Way) -> Self {
        Self { leases, way, frozen: Arc::default(), tasks: Mutex::default() }
    }

    pub fn who(&self) -> &str {
        self.way.who()
    }

    /// A task of this process: it stands still while the process is frozen, and ends when it is killed.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let frozen = Arc::clone(&self.frozen);
        let task = tokio::spawn(async move {
            let mut work = pin!(work);
            poll_fn(|context| {
                if frozen.is.load(Ordering::SeqCst) {
                    frozen.wakers.lock().unwrap().push(context.waker().clone());
                    return Poll::Pending;
                }
                work.as_mut().poll(context)
            })
            .await
        });
        self.tasks.lock().unwrap().push(task.abort_handle());
        task
    }

    /// Nothing of it runs and nothing reaches the store, until it is thawed. Its clocks go on.
    pub fn freeze(&self) {
        self.frozen.is.store(true, Ordering::SeqCst);
        self.way.set(Mode::Still);
    }

    pub fn thaw(&self) {
        self.frozen.is.store(false, Ordering::SeqCst);
        self.way.set(Mode::Open);
        for waker in self.frozen.wakers.lock().unwrap().drain(..) {
            waker.wake();
        }
    }

    /// The store cannot be reached from it.
    pub fn cut_off(&self) {
        self.way.set(Mode::Cut);
    }

    pub fn heal(&self) {
        self.way.set(Mode::Open);
    }

    /// It is gone, and says nothing to the store any more.
    pub fn kill(&self) {
        self.way.set(Mode::Still);
        for task in self.tasks.lock().unwrap().drain(..) {
            task.abort();
        }
    }
}
