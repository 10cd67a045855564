//! Where the stores are: from the environment.

use leasehold::dynamodb::aws_sdk_dynamodb::Client;
use leasehold::dynamodb::aws_sdk_dynamodb::config::retry::RetryConfig;
use leasehold::dynamodb::aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials};

use super::Result;

/// A region, and the endpoint of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub endpoint: String,
}

/// From a variable like `eu-central-1=http://127.0.0.1:4001,us-east-1=http://127.0.0.1:4002`.
pub fn regions(variable: &str, how: &str) -> Result<Vec<Region>> {
    let text = std::env::var(variable).map_err(|_| format!("{variable} is not set: {how}"))?;
    text.split(',').map(region).collect::<Option<Vec<_>>>().filter(|regions| regions.len() > 1).ok_or_else(|| {
        format!("{variable} is `{text}`, and `region=http://host:port,region=http://host:port` was expected").into()
    })
}

/// The regions of the variable, if it is set; else these, all of them at the gateway that `localstack/up` has started,
/// where they are places of their own.
pub fn regions_of_a_gateway(variable: &str, names: &[&str]) -> Result<Vec<Region>> {
    if std::env::var_os(variable).is_some() {
        return regions(variable, "");
    }
    let gateway = ["LEASEHOLD_LOCALSTACK_ENDPOINT", "LEASEHOLD_MINISTACK_ENDPOINT"];
    let endpoint = gateway.iter().find_map(|name| std::env::var(name).ok());
    let endpoint = endpoint.ok_or("no gateway: localstack/up localstack (or ministack); source localstack/.env")?;
    Ok(names.iter().map(|name| Region { name: (*name).into(), endpoint: endpoint.clone() }).collect())
}

/// A container of the Azurite that `localstack/up` has started.
pub fn container(name: &str) -> Result<Region> {
    let endpoint = std::env::var("LEASEHOLD_AZURITE_ENDPOINT")
        .map_err(|_| "no Azurite: localstack/up azurite; source localstack/.env")?;
    Ok(Region { name: "azure".into(), endpoint: format!("{endpoint}/{name}") })
}

fn region(text: &str) -> Option<Region> {
    let (name, endpoint) = text.trim().split_once("=")?;
    endpoint.starts_with("http://").then(|| Region { name: name.into(), endpoint: endpoint.into() })
}

/// A client of an emulator. On AWS it is `Client::new(&aws_config::defaults(..).region(..).load().await)`.
pub fn client(region: &Region) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(Credentials::new("test", "test", None, None, "emulator"))
        .region(leasehold::dynamodb::aws_sdk_dynamodb::config::Region::new(region.name.clone()))
        .endpoint_url(&region.endpoint)
        .retry_config(RetryConfig::standard());
    Client::from_conf(config.build())
}
