# shellcheck shell=bash disable=SC2034
# The feature sets of the tests. Sourced by test, and by what shares its compiled crates.
#
# Each distinct set compiles the crate again, and a set that turns on other features in a dependency
# compiles that again too. Three sets is the fewest that keep these three promises:
#
# * CORE has no cloud feature, so `localstack/test core` shows that the crate, its examples and its docs
#   stand without one, and a contributor gets an answer without building an SDK (minutes, cold).
# * CHECKED is CORE with the model checker, and with the Azure store, which has a simulation of its own. It differs
#   from CORE in our own crate, stateright, the Azure SDK and what these bring. Our crate is compiled again here in
#   any case, because the checkers want it optimised.
# * STORES is one set for all real stores: the emulator links SQLite anyway, so a set per store would build
#   the crate twice for nothing.
CORE=testing,conformance,serde,__proptest,__broken,__alloc
CHECKED=$CORE,__model,azure-blob
STORES=$CORE,sqlite,__azure-sdk,__dynamodb-emulator,__postgres,__s3,__lambda,__azure-function
