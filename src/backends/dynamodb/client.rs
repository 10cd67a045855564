//! The one place that speaks to the service: one attempt a call, under a time-out, with the service's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{Builder, Config, ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, TableDescription};

use super::error::{Place, failed};
use super::expressions::Update;
use super::item::Item;
use crate::types::{Answer, StoreError, Timed};

/// The hard end of a call. The client bounds each call by no more; this is for others who call the store.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A table, and a way to it that leaves the caller's client as it is.
///
/// Every call overrides the configuration of the caller's client for itself alone. So it shares that client's
/// connections and its cache of credentials, which a client derived from the same configuration does not: a
/// function's cold start has one TLS handshake and one look-up of credentials.
#[derive(Clone)]
pub(super) struct Link {
    client: Client,
    pub(super) place: Place,
}

/// What became of a conditional write.
#[derive(Debug)]
pub(super) enum Tried {
    /// It was applied; the item as it is now, where it was asked for.
    Written(Option<Item>),
    /// The condition did not hold; the item as it was then. `None`: there is no item, or the emulator is one of
    /// those that leave it out.
    Refused(Option<Item>),
}

impl Link {
    pub(super) fn new(client: Client, table: String) -> Self {
        let region = client.config().region().map(|region| region.as_ref().to_owned());
        Self { client, place: Place { table, region } }
    }

    /// The same table over connections that nobody else uses: they are driven by the runtime that opens them, so
    /// a thread with a runtime of its own must not borrow any.
    pub(super) fn isolated(&self) -> Self {
        let mut config = self.client.config().to_builder();
        // The SDK then makes its default HTTP client, a new one for each client.
        config.set_http_client(None);
        Self { client: Client::from_conf(config.build()), place: self.place.clone() }
    }

    pub(super) async fn update(&self, key: Item, update: Update, wanted: ReturnValue) -> Answer<Tried> {
        let tap = Tap::default();
        let request = self
            .client
            .update_item()
            .table_name(&self.place.table)
            .set_key(Some(key))
            .update_expression(update.expression)
            .condition_expression(update.condition)
            .set_expression_attribute_names(Some(update.names))
            .set_expression_attribute_values(Some(update.values))
            .return_values(wanted)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.customize().config_override(one_attempt(&tap)).send().await {
            Ok(written) => Ok(tap.dated(Tried::Written(written.attributes))),
            Err(error) => match refusal(&error) {
                Some(item) => Ok(tap.dated(Tried::Refused(item))),
                None => Err(self.failed("UpdateItem", error, &tap)),
            },
        }
    }

    /// A strongly consistent read.
    pub(super) async fn get(&self, key: Item) -> Answer<Option<Item>> {
        let tap = Tap::default();
        let request = self.client.get_item().table_name(&self.place.table).set_key(Some(key)).consistent_read(true);
        let answer = request.customize().config_override(one_attempt(&tap)).send().await;
        answer.map(|read| tap.dated(read.item)).map_err(|error| self.failed("GetItem", error, &tap))
    }

    /// One page of a strongly consistent scan.
    pub(super) async fn scan(&self, filter: Option<Filter>, start: Option<Item>) -> Answer<ScanOutput> {
        let tap = Tap::default();
        let mut request =
            self.client.scan().table_name(&self.place.table).consistent_read(true).set_exclusive_start_key(start);
        if let Some(filter) = filter {
            request = request
                .filter_expression(filter.expression)
                .set_expression_attribute_names(Some(filter.names))
                .set_expression_attribute_values((!filter.values.is_empty()).then_some(filter.values));
        }
        let answer = request.customize().config_override(one_attempt(&tap)).send().await;
        answer.map(|page| tap.dated(page)).map_err(|error| self.failed("Scan", error, &tap))
    }

    pub(super) async fn describe(&self) -> Answer<TableDescription> {
        let tap = Tap::default();
        let request = self.client.describe_table().table_name(&self.place.table);
        let answer = request.customize().config_override(one_attempt(&tap)).send().await;
        let answer = answer.map_err(|error| self.failed("DescribeTable", error, &tap))?;
        Ok(tap.dated(answer.table.unwrap_or_else(|| TableDescription::builder().build())))
    }

    fn failed<E>(&self, operation: &'static str, error: SdkError<E>, tap: &Tap) -> StoreError
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        failed(operation, &self.place, error.into(), tap.sent()).at(tap.date_ms())
    }
}

/// What a scan leaves out.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) expression: String,
    pub(super) names: std::collections::HashMap<String, String>,
    pub(super) values: std::collections::HashMap<String, AttributeValue>,
}

/// No retries: the SDK would send a conditional write again after a lost answer, and report the failed condition
/// of the second copy for our own success.
fn one_attempt(tap: &Tap) -> Builder {
    // The caller's connect and read time-outs stay: time-outs are merged one by one.
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    Config::builder().retry_config(RetryConfig::disabled()).timeout_config(timeouts).interceptor(tap.clone())
}

fn refusal(error: &SdkError<UpdateItemError>) -> Option<Option<Item>> {
    match error.as_service_error() {
        Some(UpdateItemError::ConditionalCheckFailedException(refused)) => Some(refused.item.clone()),
        _ => None,
    }
}

/// Watches one call: whether its request may have left, and the `Date` of its answer.
#[derive(Clone, Debug, Default)]
struct Tap(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    sent: AtomicBool,
    /// Milliseconds since 1970; 0 is none.
    date_ms: AtomicU64,
}

impl Tap {
    fn sent(&self) -> bool {
        self.0.sent.load(Ordering::Relaxed)
    }

    fn date_ms(&self) -> Option<u64> {
        Some(self.0.date_ms.load(Ordering::Relaxed)).filter(|date| *date > 0)
    }

    fn dated<T>(&self, value: T) -> Timed<T> {
        Timed::dated(value, self.date_ms())
    }
}

impl Intercept for Tap {
    fn name(&self) -> &'static str {
        "LeaseholdTap"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.sent.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.response().headers();
        // An answer without the service's request id was made on the way, by a proxy with a clock of its own.
        let by_the_service = headers.get("x-amzn-requestid").is_some_and(|id| !id.is_empty());
        if let Some(date) = headers.get("date").filter(|_| by_the_service).and_then(date_ms) {
            self.0.date_ms.store(date, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Milliseconds since 1970 of an HTTP date in its one modern form: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date_ms(text: &str) -> Option<u64> {
    const LENGTH: usize = 29;
    if text.len() != LENGTH || !text.is_ascii() {
        return None;
    }
    let date = DateTime::from_str(text, DateTimeFormat::HttpDate).ok()?;
    u64::try_from(date.secs()).ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_its_one_modern_form_only() {
        assert_eq!(date_ms("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        for other in [
            "",
            "yesterday",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37.5 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 06 Nov 1994 08:49:37 GM\u{e9}",
            "Sun, -6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:99 GMT",
        ] {
            assert_eq!(date_ms(other), None, "{other}");
        }
    }

    #[cfg(feature = "__proptest")]
    mod hostile {
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn no_date_header_makes_it_panic(
                text in ".{0,40}", shaped in "[A-Z][a-z]{2}, [0-9 -]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            ) {
                super::date_ms(&text);
                super::date_ms(&shaped);
            }
        }
    }
}
