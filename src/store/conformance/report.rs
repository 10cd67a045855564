//! What a run found.

use std::fmt;

/// What a run of the suite found, case by case. Prints as a table.
#[derive(Clone, Debug)]
#[must_use = "a report says nothing until somebody asks it: assert_passed()"]
pub struct Report {
    store: String,
    space: String,
    cases: Vec<CaseReport>,
}

/// What was found of one case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaseReport {
    /// What the case shows, as a sentence.
    pub name: String,
    /// Whether it is so.
    pub verdict: Verdict,
}

/// Whether what a case says is so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is.
    Passed,
    /// It is not, and this is what was seen.
    Failed(String),
    /// It ran, or should have, and what was seen proves nothing.
    Void(String),
    /// It says nothing about this kind of store, and why.
    NotApplicable(String),
    /// The options left it out.
    LeftOut(String),
}

impl Report {
    pub(super) fn new(store: String, space: String) -> Self {
        Self { store, space, cases: Vec::new() }
    }

    pub(super) fn add(&mut self, name: impl Into<String>, verdict: Verdict) {
        self.cases.push(CaseReport { name: name.into(), verdict });
    }

    /// Every case with its verdict.
    pub fn cases(&self) -> &[CaseReport] {
        &self.cases
    }

    /// The verdict of the case of this name.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.cases.iter().find(|case| case.name == name).map(|case| &case.verdict)
    }

    /// The cases that failed or prove nothing.
    pub fn failures(&self) -> impl Iterator<Item = &CaseReport> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_) | Verdict::Void(_)))
    }

    /// Whether every case has passed or does not apply: none failed, proves nothing, or was left out.
    pub fn passed(&self) -> bool {
        let fine = |case: &CaseReport| matches!(case.verdict, Verdict::Passed | Verdict::NotApplicable(_));
        self.cases.iter().all(fine) && self.count("passed") > 0
    }

    /// Prints the table.
    ///
    /// # Panics
    /// Unless [`passed`](Report::passed): with the same table.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "the store does not conform\n{self}");
        println!("{self}");
    }

    fn count(&self, word: &str) -> usize {
        self.cases.iter().filter(|case| case.verdict.word() == word).count()
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Void(_) => "VOID",
            Self::NotApplicable(_) => "not applicable",
            Self::LeftOut(_) => "left out",
        }
    }

    fn why(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(why) | Self::Void(why) | Self::NotApplicable(why) | Self::LeftOut(why) => Some(why),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Conformance of {}, under names {}*", self.store, self.space)?;
        for case in &self.cases {
            writeln!(f, "  {:<14}  {}", case.verdict.word(), case.name)?;
            if let Some(why) = case.verdict.why() {
                writeln!(f, "  {:<14}    {why}", "")?;
            }
        }
        write!(f, "{} cases:", self.cases.len())?;
        let words = ["passed", "FAILED", "VOID", "not applicable", "left out"];
        for word in words.into_iter().filter(|word| self.count(word) > 0) {
            write!(f, " {} {word};", self.count(word))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdicts: &[Verdict]) -> Report {
        let mut report = Report::new("test".into(), "test/".into());
        verdicts.iter().for_each(|verdict| report.add("a case", verdict.clone()));
        report
    }

    #[test]
    fn a_report_passes_only_if_something_passed_and_nothing_else_is_open() {
        let why = || "why".to_owned();
        assert!(report(&[Verdict::Passed, Verdict::NotApplicable(why())]).passed());
        assert!(!report(&[]).passed());
        assert!(!report(&[Verdict::NotApplicable(why())]).passed());
        for open in [Verdict::Failed(why()), Verdict::Void(why()), Verdict::LeftOut(why())] {
            assert!(!report(&[Verdict::Passed, open]).passed());
        }
    }

    #[test]
    fn the_table_says_why_and_counts() {
        let text = report(&[Verdict::Passed, Verdict::Failed("it rains".into())]).to_string();
        assert!(text.contains("it rains") && text.contains("2 cases: 1 passed; 1 FAILED;"), "{text}");
    }
}
