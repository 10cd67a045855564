//! Opening a table: what it must be, and which tables are refused.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeyType, MultiRegionConsistency, ScalarAttributeType, TableDescription, TableStatus};

use super::client::Link;
use super::keys::{Keys, SortKey};
use super::{DynamoDbStore, KIND, Shared};
use crate::types::{Applied, Error, Operation, StoreError, StoreErrorKind};

/// The shortest retention. The time to live of a table is an everyday matter of hours, and a record that is swept
/// takes its token with it.
const SHORTEST_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The partition key where nobody names one and nobody looks.
pub(super) const DEFAULT_PARTITION_KEY: &str = "pk";

/// Options for opening a [`DynamoDbStore`].
#[derive(Clone)]
#[must_use = "nothing happens before `open` or `unverified`"]
pub struct DynamoDbStoreBuilder {
    client: Client,
    table: String,
    options: Options,
}

#[derive(Clone, Debug, Default)]
struct Options {
    partition_key: Option<String>,
    sort_key: Option<SortKey>,
    retention: Option<Duration>,
    home_region: Option<String>,
}

impl DynamoDbStore {
    /// Opens a table with a string partition key of any name and no sort key, and checks that it is one.
    ///
    /// One `DescribeTable`. See [`DynamoDbStore::builder`] for tables of other shapes, and for global tables.
    ///
    /// # Errors
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): there is no such table, it is not active, its key is
    /// another one, or it is an eventually consistent global table without a home region.
    /// [`Denied`](crate::ErrorKind::Denied): the permission `dynamodb:DescribeTable` is missing; allow it, or use
    /// [`DynamoDbStoreBuilder::unverified`]. Otherwise [`Unavailable`](crate::ErrorKind::Unavailable): try again.
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn open(client: Client, table: impl Into<String>) -> Result<Self, Error> {
        Self::builder(client, table).open().await
    }

    /// Options for opening a table.
    pub fn builder(client: Client, table: impl Into<String>) -> DynamoDbStoreBuilder {
        DynamoDbStoreBuilder { client, table: table.into(), options: Options::default() }
    }
}

impl DynamoDbStoreBuilder {
    /// The name of the partition key. When the table is verified it is found there, and a name given here must be
    /// the one found; unverified it is `pk` unless named. It must not start with `lh_`.
    pub fn partition_key(mut self, attribute: impl Into<String>) -> Self {
        self.options.partition_key = Some(attribute.into());
        self
    }

    /// The sort key, for tables that have one, and what it holds.
    pub fn sort_key(mut self, sort_key: SortKey) -> Self {
        self.options.sort_key = Some(sort_key);
        self
    }

    /// Lets the table's time to live sweep records away that nobody has used for so long, at least a day.
    ///
    /// The same for every client of a table. Switch the table's time to live on for the attribute `lh_sweep_s`.
    /// Not for tables with multi-Region strong consistency, which have no time to live.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.options.retention = Some(retention);
        self
    }

    /// The one region whose replica of a global table everybody uses. It has to be the client's own region.
    pub fn home_region(mut self, region: impl Into<String>) -> Self {
        self.options.home_region = Some(region.into());
        self
    }

    /// Opens the table and verifies that it is what the options say: one `DescribeTable`.
    ///
    /// # Errors
    /// As [`DynamoDbStore::open`].
    ///
    /// # Cancel safety
    /// Safe: it only reads.
    pub async fn open(self) -> Result<DynamoDbStore, Error> {
        let Self { client, table, options } = self;
        let link = Link::new(client, table);
        let opened = async {
            options.check(&link)?;
            let found = link.describe().await.map_err(hint)?.value;
            let keys = options.verified(&link, &found)?;
            let identity = identity(&found).unwrap_or_else(|| unverified_identity(&link));
            Ok((keys, identity, consistency(&found)))
        };
        let (keys, identity, consistency) = opened.await.map_err(opening)?;
        Ok(options.store(link, keys, identity, consistency))
    }

    /// Uses the table without looking at it: for functions that may not, or have no time to, call
    /// `DescribeTable`.
    ///
    /// The caller vouches for the keys and for the table's consistency: on an eventually consistent global table
    /// that is written in two regions there can be two holders, and nothing will tell. The store's identity is
    /// then made of region and table name instead of the table's ARN, so hand-overs do not pass between stores
    /// that were opened in different ways.
    ///
    /// # Errors
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the options contradict each other or the client.
    pub fn unverified(self) -> Result<DynamoDbStore, Error> {
        let Self { client, table, options } = self;
        let link = Link::new(client, table);
        options.check(&link).map_err(opening)?;
        let partition = options.partition_key.clone().unwrap_or_else(|| DEFAULT_PARTITION_KEY.into());
        let keys = Keys { partition, sort: options.sort_key.clone() };
        keys.check().map_err(|why| opening(misconfigured(why)))?;
        let identity = unverified_identity(&link);
        // A region that is pinned is that of a global table, and of which kind nobody has looked.
        let consistency = if options.home_region.is_some() { Consistency::Eventual } else { Consistency::OneRegion };
        Ok(options.store(link, keys, identity, consistency))
    }
}

/// Without the client, whose own `Debug` shows an access key.
impl fmt::Debug for DynamoDbStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStoreBuilder")
            .field("table", &self.table)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// What can be checked without the table.
    fn check(&self, link: &Link) -> Result<(), StoreError> {
        if self.retention.is_some_and(|retention| retention < SHORTEST_RETENTION) {
            return Err(misconfigured("the retention is shorter than a day; make it at least 24 hours"));
        }
        match (&self.home_region, &link.place.region) {
            (Some(home), Some(region)) if home != region => Err(misconfigured(format!(
                "the home region is pinned to {home}, and the client is in {region}; give a client for {home}"
            ))),
            (Some(home), None) => Err(misconfigured(format!(
                "the home region is pinned to {home}, and the client has no region; give a client for {home}"
            ))),
            _ => Ok(()),
        }
    }

    /// The table's keys, if the table is fit for leases under these options.
    fn verified(&self, link: &Link, found: &TableDescription) -> Result<Keys, StoreError> {
        let wrong = |why: String| misconfigured(format!("table `{}`: {why}", link.place.table));
        active(found).map_err(wrong)?;
        let keys = self.keys(found).map_err(wrong)?;
        keys.check().map_err(wrong)?;
        match consistency(found) {
            Consistency::Eventual if self.home_region.is_none() => Err(wrong(
                "it is a global table with eventual consistency, where two regions can grant one lease to two \
                 holders; pin `home_region` to the one region that everybody uses"
                    .into(),
            )),
            Consistency::Strong if self.retention.is_some() => Err(wrong(
                "it is a global table with strong consistency, which has no time to live; leave `retention` out".into(),
            )),
            _ => Ok(keys),
        }
    }

    fn keys(&self, found: &TableDescription) -> Result<Keys, String> {
        let partition = key(found, &KeyType::Hash).ok_or("the service shows no partition key")?;
        let sort = key(found, &KeyType::Range);
        if let Some(expected) = self.partition_key.as_deref().filter(|expected| *expected != partition) {
            return Err(format!("its partition key is `{partition}`, and `{expected}` was expected"));
        }
        match (&sort, self.sort_key.as_ref().map(SortKey::attribute)) {
            (None, Some(expected)) => return Err(format!("it has no sort key, and `{expected}` was expected")),
            (Some(sort), None) => {
                return Err(format!(
                    "it has the sort key `{sort}`, and none was expected; say with `sort_key` what it holds"
                ));
            }
            (Some(sort), Some(expected)) if sort != expected => {
                return Err(format!("its sort key is `{sort}`, and `{expected}` was expected"));
            }
            _ => {}
        }
        for attribute in [Some(&partition), sort.as_ref()].into_iter().flatten() {
            is_string(found, attribute)?;
        }
        Ok(Keys { partition, sort: self.sort_key.clone() })
    }

    fn store(self, link: Link, keys: Keys, identity: String, consistency: Consistency) -> DynamoDbStore {
        // Two constants in one table are two sets of leases.
        let identity = match &keys.sort {
            Some(SortKey::Constant { attribute, value }) => format!("{identity}#{attribute}={value}"),
            Some(SortKey::LeaseName { attribute }) => format!("{identity}#{attribute}"),
            None => identity,
        };
        let retention_s = self.retention.map(|retention| retention.as_secs());
        DynamoDbStore { shared: Arc::new(Shared { link, keys, retention_s, identity, consistency }) }
    }
}

/// That a table which exists already has the shape of one that `create_table` makes.
pub(super) fn same_shape(found: &TableDescription, table: &str) -> Result<(), StoreError> {
    let expected = Options { partition_key: Some(DEFAULT_PARTITION_KEY.into()), ..Options::default() };
    match expected.keys(found) {
        Ok(_) => Ok(()),
        Err(why) => Err(misconfigured(format!("table `{table}` exists already, but {why}"))),
    }
}

/// How the replicas of a table keep together, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consistency {
    OneRegion,
    Eventual,
    Strong,
}

fn consistency(found: &TableDescription) -> Consistency {
    // Global tables of the first version (2017.11.29) do not list their replicas here.
    let replicated = !found.replicas().is_empty() || found.global_table_version() == Some("2017.11.29");
    match found.multi_region_consistency() {
        Some(MultiRegionConsistency::Strong) => Consistency::Strong,
        _ if replicated => Consistency::Eventual,
        _ => Consistency::OneRegion,
    }
}

/// A table that is being updated serves as usual.
fn active(found: &TableDescription) -> Result<(), String> {
    match found.table_status() {
        Some(TableStatus::Active | TableStatus::Updating) => Ok(()),
        Some(status) => Err(format!("its status is {}, and ACTIVE was expected", status.as_str())),
        None => Err("the service shows no status of it".into()),
    }
}

fn key(found: &TableDescription, kind: &KeyType) -> Option<String> {
    let key = found.key_schema().iter().find(|element| element.key_type() == kind);
    key.map(|element| element.attribute_name().to_owned())
}

fn is_string(found: &TableDescription, attribute: &str) -> Result<(), String> {
    let defined = found.attribute_definitions().iter().find(|defined| defined.attribute_name() == attribute);
    match defined.map(|defined| defined.attribute_type()) {
        Some(ScalarAttributeType::S) => Ok(()),
        Some(other) => {
            Err(format!("its key `{attribute}` has the type {}, and S (string) was expected", other.as_str()))
        }
        None => Err(format!("the service does not show the type of its key `{attribute}`")),
    }
}

/// Stable over processes. The replicas of a strongly consistent global table are one store, so the region is left
/// out of their ARN.
fn identity(found: &TableDescription) -> Option<String> {
    let arn = found.table_arn()?;
    let mut parts: Vec<&str> = arn.split(':').collect();
    if let (Consistency::Strong, Some(region)) = (consistency(found), parts.get_mut(3)) {
        *region = "*";
    }
    Some(parts.join(":"))
}

fn unverified_identity(link: &Link) -> String {
    format!("{}/{}", link.place.region(), link.place.table)
}

fn hint(error: StoreError) -> StoreError {
    // Only where the table may not be described: no other way of opening helps without credentials.
    if !error.message.contains("access denied") {
        return error;
    }
    let message = format!("{}; or open the store with `unverified()`", error.message);
    StoreError { message, ..error }
}

fn misconfigured(why: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, Applied::No, why)
}

pub(super) fn opening(error: StoreError) -> Error {
    Error::of_store(Operation::Open, KIND, error)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Region};
    use aws_sdk_dynamodb::types::builders::TableDescriptionBuilder;
    use aws_sdk_dynamodb::types::{AttributeDefinition, KeySchemaElement, ReplicaDescription};

    use super::*;

    fn table() -> TableDescriptionBuilder {
        let defined = AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash);
        TableDescription::builder()
            .table_status(TableStatus::Active)
            .table_arn("arn:aws:dynamodb:eu-central-1:123456789012:table/leases")
            .attribute_definitions(defined.build().unwrap())
            .key_schema(element.build().unwrap())
    }

    fn replicated() -> TableDescriptionBuilder {
        table().replicas(ReplicaDescription::builder().region_name("us-east-1").build())
    }

    fn strong() -> TableDescriptionBuilder {
        replicated().multi_region_consistency(MultiRegionConsistency::Strong)
    }

    fn verified(options: &Options, found: TableDescriptionBuilder) -> Result<Keys, String> {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-central-1"));
        let link = Link::new(Client::from_conf(config.build()), "leases".into());
        options.check(&link).and_then(|()| options.verified(&link, &found.build())).map_err(|error| error.message)
    }

    #[test]
    fn a_table_of_one_region_is_fit() {
        assert_eq!(verified(&Options::default(), table()).unwrap().partition, "pk");
        let named = Options { partition_key: Some("pk".into()), ..Options::default() };
        verified(&named, table().table_status(TableStatus::Updating)).unwrap();
    }

    #[test]
    fn an_eventually_consistent_global_table_needs_a_home_region() {
        let eventual = MultiRegionConsistency::Eventual;
        for found in
            [replicated(), replicated().multi_region_consistency(eventual), table().global_table_version("2017.11.29")]
        {
            let refused = verified(&Options::default(), found.clone()).unwrap_err();
            assert!(refused.contains("eventual consistency") && refused.contains("home_region"), "{refused}");
            let pinned = Options { home_region: Some("eu-central-1".into()), ..Options::default() };
            verified(&pinned, found).unwrap();
        }
    }

    #[test]
    fn a_strongly_consistent_global_table_is_fit_but_has_no_retention() {
        verified(&Options::default(), strong()).unwrap();
        let retention = Options { retention: Some(SHORTEST_RETENTION), ..Options::default() };
        assert!(verified(&retention, strong()).unwrap_err().contains("no time to live"));
        verified(&retention, table()).unwrap();
    }

    #[test]
    fn the_replicas_of_a_strongly_consistent_table_are_one_store_and_others_are_not() {
        let arn = |region: &str| format!("arn:aws:dynamodb:{region}:123456789012:table/leases");
        assert_eq!(identity(&strong().build()), Some(arn("*")));
        assert_eq!(identity(&replicated().build()), Some(arn("eu-central-1")));
    }

    #[test]
    fn a_table_that_does_not_serve_is_refused_with_its_status() {
        for status in [TableStatus::Creating, TableStatus::Deleting, TableStatus::Archived] {
            let refused = verified(&Options::default(), table().table_status(status.clone())).unwrap_err();
            assert!(refused.contains(status.as_str()), "{refused}");
        }
    }
}
