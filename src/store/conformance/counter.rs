pub(super) fn cases() -> Vec<super::Case> {
    Vec::new()
}
