//! Which attributes of the table name an item, and with which values.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::item::{Item, PREFIX};
use crate::types::Name;

/// What a table's sort key holds, for tables that have one. It must be a string.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortKey {
    /// The same value in every lease item: what sets leases apart in a table that many kinds of items share.
    Constant {
        /// The attribute.
        attribute: String,
        /// Its value.
        value: String,
    },
    /// The lease's name once more, for tables where both keys of such an item are equal.
    LeaseName {
        /// The attribute.
        attribute: String,
    },
}

impl SortKey {
    /// A sort key that has the same value in every lease item.
    pub fn constant(attribute: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Constant { attribute: attribute.into(), value: value.into() }
    }

    /// A sort key that repeats the lease's name.
    pub fn lease_name(attribute: impl Into<String>) -> Self {
        Self::LeaseName { attribute: attribute.into() }
    }

    pub(super) fn attribute(&self) -> &str {
        match self {
            Self::Constant { attribute, .. } | Self::LeaseName { attribute } => attribute,
        }
    }
}

/// The key of every lease item. The partition key's value is the lease's name as it is: DynamoDB keeps UTF-8
/// exactly and compares it byte by byte.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) partition: String,
    pub(super) sort: Option<SortKey>,
}

impl Keys {
    /// Refuses keys that a field of ours could be mistaken for.
    pub(super) fn check(&self) -> Result<(), String> {
        let sort = self.sort.as_ref().map(SortKey::attribute);
        for attribute in [Some(self.partition.as_str()), sort].into_iter().flatten() {
            if attribute.is_empty() || attribute.len() > 255 {
                return Err("a key attribute's name has 1 to 255 bytes".into());
            }
            if attribute.starts_with(PREFIX) {
                return Err(format!(
                    "the key attribute `{attribute}` starts with `{PREFIX}`, which is kept for the lease's own \
                     fields: use a table with another key"
                ));
            }
        }
        match &self.sort {
            Some(sort) if sort.attribute() == self.partition => {
                Err(format!("partition key and sort key are both `{}`: they are two attributes", self.partition))
            }
            Some(SortKey::Constant { value, .. }) if value.is_empty() || value.len() > 1024 => {
                Err("a constant sort key has 1 to 1024 bytes".into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn of(&self, name: &Name) -> HashMap<String, AttributeValue> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut key = HashMap::from([(self.partition.clone(), text(name.as_str()))]);
        match &self.sort {
            Some(SortKey::Constant { attribute, value }) => key.insert(attribute.clone(), text(value)),
            Some(SortKey::LeaseName { attribute }) => key.insert(attribute.clone(), text(name.as_str())),
            None => None,
        };
        key
    }

    /// The name of the lease in this item, if it can be one.
    pub(super) fn name_of(&self, item: &Item) -> Option<Name> {
        Name::new(item.get(&self.partition)?.as_s().ok()?).ok()
    }
}

/// For people.
impl std::fmt::Display for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "partition key `{}` (string)", self.partition)?;
        match &self.sort {
            Some(sort) => write!(f, " and sort key `{}` (string)", sort.attribute()),
            None => f.write_str(" and no sort key"),
        }
    }
}
