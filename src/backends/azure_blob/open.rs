//! Opening a container.

use std::fmt;
use std::sync::Arc;

use azure_core::http::{HttpClient, Url};

use super::client::{Link, Refusal, Setup};
use super::credential::Credential;
use super::error::no_container;
use super::notes::Notes;
use super::{AzureBlobStore, KIND, Shared};
use crate::types::{Applied, Error, Operation, StoreError, StoreErrorKind};

/// Options for opening an [`AzureBlobStore`].
#[derive(Clone)]
#[must_use = "nothing happens before `open` or `unverified`"]
pub struct AzureBlobStoreBuilder {
    container: String,
    credential: Credential,
    http_client: Option<Arc<dyn HttpClient>>,
    create_container: bool,
}

impl AzureBlobStore {
    /// Opens a container by its URL, `https://<account>.blob.core.windows.net/<container>`, and checks that it is there.
    ///
    /// One `Get Container Properties`. A container of its own is best, because whoever may delete or break leases in it
    /// may end any grant.
    ///
    /// # Errors
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): there is no such container, or URL and credential do not
    /// fit. [`Denied`](crate::ErrorKind::Denied): the permission to read the container's properties is missing; grant
    /// it, or use [`AzureBlobStoreBuilder::unverified`]. Otherwise [`Unavailable`](crate::ErrorKind::Unavailable): try
    /// again.
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn open(container: impl Into<String>, credential: Credential) -> Result<Self, Error> {
        Self::builder(container, credential).open().await
    }

    /// Options for opening a container.
    pub fn builder(container: impl Into<String>, credential: Credential) -> AzureBlobStoreBuilder {
        AzureBlobStoreBuilder { container: container.into(), credential, http_client: None, create_container: false }
    }
}

impl AzureBlobStoreBuilder {
    /// Creates the container if it is not there. For tests and first steps; in production create it with the rest of
    /// the infrastructure.
    pub fn create_container(mut self) -> Self {
        self.create_container = true;
        self
    }

    /// The HTTP client to send requests with, for proxies or certificates of one's own. It must not retry, and must
    /// tell a connection that was never made ([`ErrorKind::Connection`](azure_core::error::ErrorKind::Connection)) from
    /// one that broke: only of the former nothing can have been written. Default: one of the SDK's, made for this store.
    ///
    /// With [`Renewal::Thread`](crate::Renewal::Thread) it is used from two runtimes, and must bear that.
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.http_client = Some(client);
        self
    }

    /// Opens the container and verifies that it is there: one request, two if it had to be created.
    ///
    /// # Errors
    /// As [`AzureBlobStore::open`].
    ///
    /// # Cancel safety
    /// Safe: the container may have been created.
    pub async fn open(self) -> Result<AzureBlobStore, Error> {
        let create = self.create_container;
        let store = self.unverified()?;
        verify(&store.shared.link, create).await.map_err(opening)?;
        Ok(store)
    }

    /// Uses the container without looking at it: for functions that may not read its properties, or have no time to.
    ///
    /// # Errors
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): URL and credential do not fit.
    pub fn unverified(self) -> Result<AzureBlobStore, Error> {
        let Self { container, credential, http_client, .. } = self;
        let container = url(&container, "container").map_err(|why| opening(misconfigured(why)))?;
        check(&container).map_err(|why| opening(misconfigured(why)))?;
        let link = Link::new(Setup { container, credential, http_client });
        let link = link.map_err(|why| opening(misconfigured(why)))?;
        Ok(AzureBlobStore { shared: Arc::new(Shared { link, notes: Notes::default() }) })
    }
}

/// Without the URL, in which there may be a signature.
impl fmt::Debug for AzureBlobStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureBlobStoreBuilder")
            .field("credential", &self.credential)
            .field("create_container", &self.create_container)
            .finish_non_exhaustive()
    }
}

/// The URL of a container or blob. Nothing of it is repeated in what is wrong: there may be a signature in it, and the
/// parser's own error can quote it.
pub(super) fn url(text: &str, of: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| format!("the {of}'s URL is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the {of}'s URL is not an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("the {of}'s URL has a user or a password in it: give a credential instead"));
    }
    // It would become a part of the name, which is shown and logged.
    if url.path().contains("sig=") || url.path().contains("sig%3D") {
        return Err(format!("the {of}'s URL has a signature in its path: it has to follow a `?`"));
    }
    Ok(url)
}

/// The parts of a URL's path that a container has: an emulator has the account before it.
pub(super) fn parts_of_container(url: &Url) -> usize {
    if url.host_str().is_some_and(|host| host.contains(".blob.")) { 1 } else { 2 }
}

/// An account has a name in DNS; only an emulator is asked for by address.
fn is_of_emulator(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Whether the URL can be that of a container.
fn check(container: &Url) -> Result<(), &'static str> {
    let path: Vec<_> = container.path_segments().into_iter().flatten().collect();
    match path.last() {
        None | Some(&"") => {
            Err("the URL names no container, or has a `/` behind it: it must end with `/` and the container's name")
        }
        Some(_) if is_of_emulator(container) && path.len() < 2 => {
            Err("the URL names an account and no container: an emulator's must end with `/ACCOUNT/CONTAINER`")
        }
        Some(_) if path.len() > parts_of_container(container) => {
            Err("the URL names more than a container: it ends with the container's name")
        }
        Some(_) => Ok(()),
    }
}

async fn verify(link: &Link, create: bool) -> Result<(), StoreError> {
    match link.look_at_container().await?.value {
        Ok(()) => Ok(()),
        Err(_) if !create => Err(no_container(&link.place)),
        Err(_) => match link.create_container().await?.value {
            Ok(()) | Err(Refusal::Exists) => Ok(()),
            Err(_) => Err(no_container(&link.place)),
        },
    }
}

fn misconfigured(why: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, Applied::No, why)
}

fn opening(error: StoreError) -> Error {
    Error::of_store(Operation::Open, KIND, error)
}
