//! The text that a fenced write stores: whose token, and which write.

use std::fmt;

use crate::types::FencingToken;

/// Names one write through a fence: its token, the raise that it belongs to, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteId {
    token: FencingToken,
    session: u128,
    number: u64,
}

/// What is stored: the token, a random number of the raise in hexadecimal, and the number of the write, with dots
/// between. After a raise, which leaves the content as it is, a slash follows and which write the content is of.
///
/// A bare token is a fence too, for those who set one by hand; 0 is one that nobody has raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fenced {
    token: FencingToken,
    last: Option<WriteId>,
    raised_over: Option<Option<WriteId>>,
}

impl WriteId {
    pub(super) fn new(token: FencingToken, session: u128, number: u64) -> Self {
        Self { token, session, number }
    }

    /// The token of the write.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let token = FencingToken::new(number(parts.next()?)?)?;
        Some(Self { token, session: hexadecimal(parts.next()?)?, number: number(parts.next()?)? })
    }
}

impl Fenced {
    /// A write of content.
    pub(super) fn write(this: WriteId) -> Self {
        Self { token: this.token, last: Some(this), raised_over: None }
    }

    /// A raise over the content of this write.
    pub(super) fn raise(this: WriteId, content: Option<WriteId>) -> Self {
        Self { token: this.token, last: Some(this), raised_over: Some(content) }
    }

    pub(super) fn token(&self) -> FencingToken {
        self.token
    }

    /// The number of the last write, if it is of this raise.
    pub(super) fn of_session(&self, session: u128) -> Option<u64> {
        self.last.as_ref().filter(|last| last.session == session).map(|last| last.number)
    }

    /// Which write the content is of.
    pub(super) fn content(&self) -> Option<WriteId> {
        match &self.raised_over {
            Some(content) => content.clone(),
            None => self.last.clone(),
        }
    }

    /// `None`: not a text of ours. `Some(None)`: no token yet.
    pub(super) fn parse(text: &str) -> Option<Option<Self>> {
        if text == "0" {
            return Some(None);
        }
        if let Some(token) = number(text) {
            return FencingToken::new(token).map(|token| Some(Self { token, last: None, raised_over: None }));
        }
        let Some((raise, content)) = text.split_once('/') else {
            return WriteId::parse(text).map(|write| Some(Self::write(write)));
        };
        let content = if content.is_empty() { None } else { Some(WriteId::parse(content)?) };
        WriteId::parse(raise).map(|raise| Some(Self::raise(raise, content)))
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:032x}.{}", self.token, self.session, self.number)
    }
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last {
            Some(last) => last.fmt(f)?,
            None => self.token.fmt(f)?,
        }
        match &self.raised_over {
            Some(Some(content)) => write!(f, "/{content}"),
            Some(None) => f.write_str("/"),
            None => Ok(()),
        }
    }
}

/// Digits only: `parse` alone takes a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn hexadecimal(text: &str) -> Option<u128> {
    let good = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    good.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(token: u64, session: u128, number: u64) -> WriteId {
        WriteId::new(FencingToken::new(token).unwrap(), session, number)
    }

    #[test]
    fn the_stored_text_names_the_last_write_and_the_one_that_the_content_is_of() {
        let (old, new) = (write(7, 0xa, 4), write(8, 0xb, 1));
        let (old_text, new_text) = ("7.0000000000000000000000000000000a.4", "8.0000000000000000000000000000000b.1");
        for (fenced, text, content) in [
            (Fenced::write(old.clone()), old_text.to_owned(), Some(old.clone())),
            (Fenced::raise(new.clone(), Some(old.clone())), format!("{new_text}/{old_text}"), Some(old)),
            (Fenced::raise(new, None), format!("{new_text}/"), None),
        ] {
            assert_eq!((fenced.to_string(), fenced.content()), (text.clone(), content));
            assert_eq!(Fenced::parse(&text), Some(Some(fenced)));
        }
    }

    #[test]
    fn a_write_is_known_by_its_raise() {
        let fenced = Fenced::write(write(8, 0xb, 3));
        assert_eq!((fenced.of_session(0xb), fenced.of_session(0xc)), (Some(3), None));
    }

    #[test]
    fn a_bare_token_is_a_fence_and_0_is_one_that_nobody_has_raised() {
        let by_hand = Fenced::parse("8").unwrap().unwrap();
        assert_eq!((by_hand.token().as_u64(), by_hand.content(), by_hand.to_string().as_str()), (8, None, "8"));
        assert_eq!(Fenced::parse("0"), Some(None));
    }

    #[test]
    fn anything_else_is_no_fence() {
        let session = "0".repeat(32);
        let good = format!("8.{session}.1");
        assert!(Fenced::parse(&good).is_some());
        let short =
            ["", " 8", "8 ", "+8", "-1", "8.5", "8.", "0x8", "9007199254740992", "99999999999999999999", "eight", "8/"];
        let long = [
            format!("8.{session}"),
            format!("8.{session}."),
            format!("8.{session}.+1"),
            format!("0.{session}.1"),
            format!("8.{session}0.1"),
            format!("{good}.1"),
            format!(".{session}.1"),
            format!("{good}/8"),
            format!("{good}/{good}/"),
            format!("8/{good}"),
        ];
        for text in short.into_iter().map(str::to_owned).chain(long) {
            assert_eq!(Fenced::parse(&text), None, "{text:?}");
        }
    }
}
