//! A server on a loopback port that can be switched off and on again.
#![allow(clippy::disallowed_methods, reason = "tests wait and measure in real time")]

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// A server with a thread and a runtime of its own, so that it answers from tests of any
/// runtime flavour, also while every thread of the test's own runtime is blocked.
///
/// Dropping it closes the listener and every connection.
pub struct Loopback {
    addr: SocketAddr,
    serve: Serve,
    running: Mutex<Option<Running>>,
    /// Bound and never listening: nobody else is given the port while the server is down.
    _reserved: TcpSocket,
}

type Serve = Arc<dyn Fn(TcpListener) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Loopback {
    /// Takes a free port and starts `serve` on it.
    pub fn start<F>(serve: impl Fn(TcpListener) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let reserved = bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = Self {
            addr: reserved.local_addr().expect("a bound socket has an address"),
            serve: Arc::new(move |listener| Box::pin(serve(listener))),
            running: Mutex::new(None),
            _reserved: reserved,
        };
        server.up();
        server
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Listens again on the same port. Returns once connections are accepted.
    pub fn up(&self) {
        let mut running = self.running.lock().unwrap();
        running.get_or_insert_with(|| Running::start(self.addr, self.serve.clone()));
    }

    /// Drops all connections and refuses new ones. Returns once that is so.
    pub fn down(&self) {
        if let Some(running) = self.running.lock().unwrap().take() {
            running.stop();
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.down();
    }
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(addr: SocketAddr, serve: Serve) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::spawn(move || {
            // The runtime is dropped with the thread, and all connections with it.
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = bind(addr).listen(1024).expect("the port is reserved");
                ready.send(()).expect("the starter waits");
                tokio::select! {
                    () = serve(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().expect("the server starts");
        Self { stop, thread }
    }

    fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// With address reuse, because the reserving socket and the listening one share the port.
fn bind(addr: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option every system has");
    socket.bind(addr).expect("a free loopback port");
    socket
}
