//! Listing: the blobs of the container by name, with their metadata.

use std::collections::HashMap;

use azure_core::xml;
use serde::Deserialize;

use super::content::Kept;
use super::metadata::{Found, LeaseState, Pairs};
use super::names;
use crate::types::{ListPage, Listed, Page, Standing};

#[derive(Deserialize)]
struct Results {
    #[serde(rename = "Blobs", default)]
    blobs: Blobs,
    #[serde(rename = "NextMarker")]
    next_marker: Option<String>,
}

#[derive(Default, Deserialize)]
struct Blobs {
    #[serde(rename = "Blob", default)]
    blobs: Vec<Blob>,
}

#[derive(Deserialize)]
struct Blob {
    #[serde(rename = "Name")]
    name: BlobName,
    #[serde(rename = "Properties", default)]
    properties: Properties,
    /// An empty element where there are none.
    #[serde(rename = "Metadata")]
    metadata: Option<HashMap<String, String>>,
}

/// A name that XML cannot hold is marked as encoded; no lease has such a blob.
#[derive(Deserialize)]
struct BlobName {
    #[serde(rename = "$text")]
    text: Option<String>,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(rename = "Etag")]
    tag: Option<String>,
    #[serde(rename = "LeaseState")]
    lease_state: Option<String>,
}

/// The leases of one page; `None` when it cannot be read.
pub(super) fn page(body: &[u8], prefix: &str) -> Option<ListPage> {
    let results: Results = xml::from_xml(body).ok()?;
    let (mut leases, mut skipped) = (Vec::new(), 0);
    for blob in results.blobs.blobs {
        let lease = blob.name.text.as_deref().and_then(names::lease_of);
        match (lease, blob.found()) {
            (Some(name), _) if !name.as_str().starts_with(prefix) => {}
            (Some(name), Some(found)) => match found.view() {
                view if matches!(view.standing, Standing::Unreadable(_)) => skipped += 1,
                view => leases.push(Listed { name, view }),
            },
            _ => skipped += 1,
        }
    }
    Some(ListPage { leases, skipped, next: results.next_marker.filter(|marker| !marker.is_empty()).map(Page) })
}

impl Blob {
    fn found(&self) -> Option<Found> {
        let tag = self.properties.tag.as_deref()?;
        // A listing leaves out the quotes that the header has, and the header is what a condition is compared with.
        let tag = if tag.starts_with('"') { tag.into() } else { format!("\"{tag}\"").into() };
        let state = LeaseState::parse(self.properties.lease_state.as_deref()?)?;
        let pairs = self.metadata.iter().flatten().map(|(name, value)| (name.to_lowercase(), value.clone()));
        Some(Found { tag, state, pairs: pairs.collect::<Pairs>(), kept: Kept::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
        <EnumerationResults ServiceEndpoint="https://acct.blob.core.windows.net/" ContainerName="leases">
        <Prefix>jobs</Prefix><Blobs>
        <Blob><Name>jobs/a</Name><Properties><Etag>0x1</Etag><LeaseStatus>locked</LeaseStatus>
          <LeaseState>leased</LeaseState></Properties>
          <Metadata><lh_format>1</lh_format><lh_token>7</lh_token><theirs>x</theirs></Metadata></Blob>
        <Blob><Name>jobs-other</Name><Properties><Etag>0x2</Etag><LeaseState>available</LeaseState></Properties>
          <Metadata><lh_format>1</lh_format><lh_token>1</lh_token></Metadata></Blob>
        <Blob><Name>jobs/photo.jpg</Name><Properties><Etag>0x3</Etag><LeaseState>available</LeaseState></Properties>
          <Metadata /></Blob>
        </Blobs><NextMarker>2!8!abc</NextMarker></EnumerationResults>"#;

    #[test]
    fn a_page_shows_the_leases_of_its_prefix_and_counts_what_is_none() {
        let page = page(PAGE.as_bytes(), "jobs/").unwrap();
        let names: Vec<_> = page.leases.iter().map(|lease| lease.name.as_str()).collect();
        assert_eq!((names, page.skipped), (vec!["jobs/a"], 1));
        assert_eq!(page.leases[0].view.token(), 7);
        assert_eq!(page.next, Some(Page("2!8!abc".into())));
    }

    #[test]
    fn an_odd_blob_costs_only_itself() {
        let good = "<Blob><Name>good</Name><Properties><Etag>0x1</Etag><LeaseState>leased</LeaseState></Properties>\
             <Metadata><lh_format>1</lh_format><lh_token>7</lh_token></Metadata></Blob>";
        for odd in [
            "<Blob><Name>odd</Name></Blob>",
            "<Blob><Name>odd</Name><Properties/><Metadata/></Blob>",
            "<Blob><Name Encoded=\"true\">%FF</Name><Properties><Etag>0x2</Etag></Properties></Blob>",
            "<Blob><Name/><Properties><Etag>0x2</Etag></Properties></Blob>",
            "<Blob><Name>odd</Name><Properties><Etag>0x2</Etag><LeaseState>leased</LeaseState></Properties>\
             <Metadata Encrypted=\"true\"/></Blob>",
            "<Blob><Name>odd</Name><Properties><Etag>0x2</Etag><LeaseState>new</LeaseState></Properties>\
             <Metadata><a/><b></b><x-ms-invalid-name>1</x-ms-invalid-name><x-ms-invalid-name>2</x-ms-invalid-name>\
             </Metadata><OrMetadata/><Tags><TagSet/></Tags></Blob>",
        ] {
            let body = format!("<EnumerationResults><Blobs>{odd}{good}</Blobs><NextMarker/></EnumerationResults>");
            let page = page(body.as_bytes(), "").unwrap_or_else(|| panic!("{odd}"));
            assert_eq!((page.leases.len(), page.skipped), (1, 1), "{odd}");
        }
    }

    #[test]
    fn an_empty_page_is_a_page_and_nonsense_is_none() {
        let empty = "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>";
        let empty = page(empty.as_bytes(), "").unwrap();
        assert_eq!((empty.leases.len(), empty.skipped, empty.next), (0, 0, None));
        assert!(page(b"<html>502</html", "").is_none());
        assert!(page(b"\xff\xfe", "").is_none());
    }

    #[cfg(feature = "__proptest")]
    mod hostile {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn no_listing_makes_it_panic_nor_shows_what_is_not_a_sound_lease(
                at in 0..PAGE.len(), length in 0..60usize, put in prop_oneof!["[ -~]{0,20}", "<[A-Za-z/]{0,8}>", ".{0,8}"],
            ) {
                let (end, mut body) = ((at + length).min(PAGE.len()), PAGE.as_bytes().to_vec());
                body.splice(at..end, put.bytes());
                for lease in page(&body, "jobs/").iter().flat_map(|page| &page.leases) {
                    prop_assert!(lease.name.as_str().starts_with("jobs/"));
                    let unreadable = matches!(lease.view.standing, Standing::Unreadable(_));
                    // The blob of the page is leased: whatever is wrong with it, nobody may take it for free.
                    let leased = body.windows(19).any(|part| part == b"<LeaseState>leased<");
                    prop_assert!(!unreadable && (lease.view.standing != Standing::Vacant || !leased));
                }
            }

            #[test]
            fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
                page(&body, "");
            }
        }
    }
}
