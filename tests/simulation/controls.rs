//! Positive controls: rules of the protocol, broken inside the real code, that the simulation must notice.
