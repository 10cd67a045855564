//! What the tests share and the library does not know of.

#[cfg(all(feature = "azure-blob", feature = "testing"))]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "every test target uses its own part")]
pub mod azure;
#[cfg(feature = "azure-blob")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod azurite;
#[cfg(feature = "testing")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod counting_sleeps;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod emulator;
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod example;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod faults;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod gateway;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod global_table;
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod http;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod loopback;
#[cfg(feature = "__proptest")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod names;
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod process;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod proxy;
#[cfg(feature = "testing")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod scripted;
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod secrets;
#[cfg(feature = "__dynamodb-emulator")]
#[allow(dead_code, unreachable_pub, reason = "every test target uses its own part")]
pub mod wire;
#[allow(dead_code, unreachable_pub, unused_imports, reason = "every test target uses its own part")]
pub mod worker;
