//! An Azurite that runs already, and what opens every one.

/// The account that every Azurite has.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its key, which is published.
pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// A signature of the account by that key: blobs and containers, to read, write, list, add and create, until 2099.
pub const SAS: &str = "sv=2021-12-02&ss=b&srt=sco&sp=rwlac&se=2099-12-31T00%3A00%3A00Z&spr=https%2Chttp\
                       &sig=t4t3raj9AEoHSGQBSJz%2BTRsvR1XS6RDGfmL8TbyB9w0%3D";

/// The URL of its account.
pub fn endpoint() -> String {
    let endpoint = std::env::var("LEASEHOLD_AZURITE_ENDPOINT")
        .expect("LEASEHOLD_AZURITE_ENDPOINT is not set: start Azurite with `localstack/up azurite`");
    endpoint.trim_end_matches('/').to_owned()
}

/// The URL of a container that no other run of the tests uses.
pub fn container(name: &str) -> String {
    format!("{}/{name}-{}", endpoint(), std::process::id())
}
