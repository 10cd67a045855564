//! One request each to several members.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The answers of a round, as they come.
pub(super) struct Round<T> {
    answers: mpsc::UnboundedReceiver<(usize, T)>,
    /// What runs here, where nothing may go on after the call.
    here: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<T: Send + 'static> Round<T> {
    /// Sends them all. Those that go on do so in tasks, also when this is dropped.
    pub(super) fn begin<F>(go_on: bool, requests: impl IntoIterator<Item = (usize, F)>) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (told, answers) = mpsc::unbounded_channel();
        let runtime = Handle::try_current().ok().filter(|_| go_on);
        let here = FuturesUnordered::new();
        for (member, request) in requests {
            let told = told.clone();
            // A member that panics is one that does not answer.
            let work = async move {
                if let Ok(answer) = AssertUnwindSafe(request).catch_unwind().await {
                    let _ = told.send((member, answer));
                }
            };
            match &runtime {
                Some(runtime) => drop(runtime.spawn(work)),
                None => here.push(Box::pin(work) as Pin<Box<dyn Future<Output = ()> + Send>>),
            }
        }
        Self { answers, here }
    }

    /// The next answer; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Option<(usize, T)> {
        loop {
            tokio::select! {
                biased;
                answer = self.answers.recv() => return answer,
                Some(()) = self.here.next(), if !self.here.is_empty() => {}
            }
        }
    }
}
