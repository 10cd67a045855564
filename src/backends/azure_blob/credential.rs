//! Who calls, and how a request shows it.

use std::fmt;
use std::sync::Arc;

use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::Url;
use azure_core::http::policies::Policy;

use super::shared_key::SharedKey;
use super::token::Bearer;

/// How requests to Azure Blob Storage are authorised. Its `Debug` shows the kind only.
#[derive(Clone)]
pub struct Credential(Kind);

#[derive(Clone)]
enum Kind {
    Token(Arc<dyn TokenCredential>),
    Sas(Secret),
    SharedKey { account: String, key: Secret },
    InUrl,
}

impl Credential {
    /// A token of Microsoft Entra ID, by any credential of `azure_identity`. Over https only.
    ///
    /// A token is replaced in its last five minutes. While it is good one request waits for the next one, a second at
    /// most; if that is in vain, no other does for 30 seconds. With
    /// [`Renewal::Thread`](crate::Renewal::Thread) the credential is used from two runtimes.
    pub fn token(credential: Arc<dyn TokenCredential>) -> Self {
        Self(Kind::Token(credential))
    }

    /// A shared access signature: the query that has `sig=` in it, with or without its `?`. It needs the permissions read
    /// and write; list for [`Leases::list`](crate::Leases::list).
    pub fn sas(query: impl Into<String>) -> Self {
        Self(Kind::Sas(Secret::new(query.into())))
    }

    /// The account's shared key, in base64. Whoever has it may do anything to the account: for emulators and
    /// development; prefer a token.
    pub fn shared_key(account: impl Into<String>, key: impl Into<String>) -> Self {
        Self(Kind::SharedKey { account: account.into(), key: Secret::new(key.into()) })
    }

    /// The container's URL has a shared access signature in it.
    pub fn in_url() -> Self {
        Self(Kind::InUrl)
    }

    pub(super) fn is_in_url(&self) -> bool {
        matches!(self.0, Kind::InUrl)
    }

    /// What has to be added to the URL of every request, and what signs it. Says what is wrong for this container.
    pub(super) fn apply(&self, container: &mut Url) -> Result<Option<Arc<dyn Policy>>, String> {
        match &self.0 {
            Kind::Token(_) if container.scheme() != "https" => {
                Err("a token is sent over https only, and the container's URL is not one; use a shared key or a \
                     shared access signature"
                    .into())
            }
            Kind::Token(credential) => Ok(Some(Arc::new(Bearer::new(Arc::clone(credential))))),
            Kind::Sas(query) => {
                let query = query.secret().trim_start_matches('?');
                if !query.contains("sig=") {
                    return Err("a shared access signature is a query with `sig=` in it".into());
                }
                container.set_query(Some(query));
                Ok(None)
            }
            Kind::SharedKey { account, key } => Ok(Some(Arc::new(SharedKey::new(account, key.clone())?))),
            Kind::InUrl if !container.query().unwrap_or_default().contains("sig=") => {
                Err("the container's URL has no shared access signature in it (a query with `sig=`)".into())
            }
            Kind::InUrl => Ok(None),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Token(_) => "Credential::token(..)",
            Kind::Sas(_) => "Credential::sas(..)",
            Kind::SharedKey { .. } => "Credential::shared_key(..)",
            Kind::InUrl => "Credential::in_url()",
        })
    }
}
