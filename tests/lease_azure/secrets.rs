//! No secret is shown: neither a credential nor a grant, not in logs, not in errors, not in any `Debug`.
