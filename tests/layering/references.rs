//! Reads the paths that a Rust source text names: enough of a lexer to leave out comments and strings,
//! and of a parser to unfold `use a::{b, c::d}`, to follow `super` and to know test code.

use std::fmt;

/// The last segment of every path, so that a rule can ask for a path that ends here.
pub(crate) const END: &str = "";

/// A path in the source. Those into our own crate are given from its root: `crate::lease::Lease`,
/// also where the text says `super::Lease`.
pub(crate) struct Reference {
    segments: Vec<String>,
    pub(crate) line: usize,
    /// Inside `#[cfg(test)]`.
    pub(crate) in_test: bool,
    /// Names a macro, or stands in one as `$crate`: no import, so it may go over the crate root.
    pub(crate) by_macro: bool,
}

impl Reference {
    /// The module of our crate that the path goes into; "" for the root itself.
    pub(crate) fn target_in_crate(&self) -> Option<&str> {
        (self.segments[0] == "crate").then(|| self.segments[1].as_str())
    }

    pub(crate) fn contains(&self, part: &[&str]) -> bool {
        self.segments.windows(part.len()).any(|window| window == part)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.segments[..self.segments.len() - 1].join("::"))
    }
}

/// The module path of a file below src/: `lease/mod.rs` is `[lease]`, `lib.rs` is empty.
pub(crate) fn home_of(file: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let parts = stem.split('/').filter(|part| *part != "lib");
    parts.map(str::to_owned).collect()
}

pub(crate) fn references_in(file: &str, text: &str) -> Vec<Reference> {
    let home = home_of(file);
    let test_file = home.iter().any(|part| part == "tests");
    let mut reader = Reader {
        tokens: tokens_of(text),
        at: 0,
        depth: 0,
        modules: home.into_iter().map(|name| (name, 0)).collect(),
        test_file,
        test_item: None,
        found: Vec::new(),
    };
    reader.read();
    reader.found
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// Open brackets of all kinds.
    depth: usize,
    /// Where we are, each with the depth inside its braces; 0 for the file's own path.
    modules: Vec<(String, usize)>,
    test_file: bool,
    /// The depth at which an item under `#[cfg(test)]` stands.
    test_item: Option<usize>,
    found: Vec<Reference>,
}

impl Reader {
    fn read(&mut self) {
        while self.at < self.tokens.len() {
            match self.text(0) {
                "#" => self.attribute(),
                "mod" if self.text(2) == "{" => {
                    self.modules.push((self.text(1).to_owned(), self.depth + 1));
                    self.at += 2;
                }
                "{" | "(" | "[" => self.open(),
                "}" | ")" | "]" => self.close(),
                ";" => {
                    self.end_test_item();
                    self.at += 1;
                }
                _ if self.starts_path() => self.path(),
                _ => self.at += 1,
            }
        }
    }

    fn open(&mut self) {
        self.depth += 1;
        self.at += 1;
    }

    fn close(&mut self) {
        if self.modules.last().is_some_and(|(_, depth)| *depth == self.depth && *depth > 0) {
            self.modules.pop();
        }
        self.depth = self.depth.saturating_sub(1);
        if self.text(0) == "}" {
            self.end_test_item();
        }
        self.at += 1;
    }

    fn end_test_item(&mut self) {
        if self.test_item.is_some_and(|depth| self.depth <= depth) {
            self.test_item = None;
        }
    }

    /// Only `cfg(test)` and `cfg(all(test, ..))` keep code out of every build but a test's.
    fn attribute(&mut self) {
        let inner = usize::from(self.text(1) == "!");
        let follows = |words: &[&str]| (0..words.len()).all(|i| self.text((1 + inner + i) as isize) == words[i]);
        if follows(&["[", "cfg", "(", "test", ")"]) || follows(&["[", "cfg", "(", "all", "(", "test", ","]) {
            if inner == 1 && self.depth == 0 {
                self.test_file = true;
            } else if self.test_item.is_none() {
                self.test_item = Some(self.depth);
            }
        }
        self.at += 1 + inner;
    }

    fn starts_path(&self) -> bool {
        let (before, earlier) = (self.text(-1), self.text(-2));
        let continues = before == "." || before == "::" && (is_word(earlier) && earlier != "use" || earlier == ">");
        is_word(self.text(0)) && !continues
    }

    fn path(&mut self) {
        let visibility = matches!(self.text(-1), "(" | "in") && matches!(self.text(1), ")");
        let by_macro = self.text(-1) == "$";
        let before = self.found.len();
        self.tree(Vec::new());
        for reference in &mut self.found[before..] {
            reference.by_macro |= by_macro;
        }
        if visibility {
            self.found.truncate(before); // `pub(crate)` and `pub(super)` import nothing
        }
    }

    /// One `use` tree, or a path in an expression or a type, which has the same beginning.
    fn tree(&mut self, mut segments: Vec<String>) {
        loop {
            match self.text(0) {
                "{" => return self.group(&segments),
                word if is_word(word) || word == "*" => segments.push(word.to_owned()),
                _ => return self.record(segments), // `::<` of a turbofish
            }
            self.at += 1;
            if self.text(0) != "::" {
                return self.record(segments);
            }
            self.at += 1;
        }
    }

    fn group(&mut self, segments: &[String]) {
        self.at += 1;
        while !matches!(self.text(0), "}" | "") {
            if is_word(self.text(0)) || matches!(self.text(0), "*" | "{") {
                self.tree(segments.to_vec());
            }
            while !matches!(self.text(0), "," | "}" | "") {
                self.at += 1; // `as alias`
            }
            if self.text(0) == "," {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    fn record(&mut self, segments: Vec<String>) {
        let mut segments = self.resolved(segments);
        segments.push(END.to_owned());
        self.found.push(Reference {
            segments,
            line: self.tokens[self.at.min(self.tokens.len()) - 1].line,
            in_test: self.test_file || self.test_item.is_some(),
            by_macro: self.text(0) == "!",
        });
    }

    fn resolved(&self, segments: Vec<String>) -> Vec<String> {
        if !matches!(segments[0].as_str(), "super" | "self") {
            return segments;
        }
        let ups = segments.iter().take_while(|s| *s == "super" || *s == "self").count();
        let supers = segments.iter().take(ups).filter(|s| *s == "super").count();
        let here = self.modules.iter().map(|(name, _)| name.clone());
        let kept = here.take(self.modules.len().saturating_sub(supers));
        let root = std::iter::once("crate".to_owned());
        root.chain(kept).chain(segments.into_iter().skip(ups)).collect()
    }

    fn text(&self, offset: isize) -> &str {
        let index = self.at.checked_add_signed(offset);
        index.and_then(|index| self.tokens.get(index)).map_or("", |token| token.text.as_str())
    }
}

struct Token {
    text: String,
    line: usize,
}

/// Words, `::` and single signs. Comments, literals in quotes and lifetimes are left out.
fn tokens_of(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let rest = &chars[at..];
        let (length, is_token) = next_token(rest);
        if is_token {
            let text: String = rest[..length].iter().collect();
            tokens.push(Token { text: text.trim_start_matches("r#").to_owned(), line });
        }
        line += rest[..length].iter().filter(|c| **c == '\n').count();
        at += length;
    }
    tokens
}

/// How many characters belong together at the start of `rest`, and whether they are a token.
fn next_token(rest: &[char]) -> (usize, bool) {
    let starts = |text: &str| text.chars().enumerate().all(|(i, c)| rest.get(i) == Some(&c));
    let word = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    if rest[0].is_whitespace() {
        (1, false)
    } else if starts("//") {
        (rest.iter().take_while(|c| **c != '\n').count(), false)
    } else if starts("/*") {
        (block_comment(rest), false)
    } else if let Some(length) = raw_string(rest) {
        (length, false)
    } else if starts("r#") && rest.len() > 2 {
        (2 + next_token(&rest[2..]).0, true)
    } else if let Some(prefix) = ["\"", "b\"", "c\""].iter().find(|prefix| starts(prefix)) {
        (prefix.len() - 1 + quoted(&rest[prefix.len() - 1..]), false)
    } else if starts("b'") {
        (1 + quoted(&rest[1..]), false)
    } else if starts("'") {
        (char_or_lifetime(rest), false)
    } else if word > 0 {
        (word, true)
    } else {
        (if starts("::") { 2 } else { 1 }, true)
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => depth += 1,
            ['*', '/', ..] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

fn raw_string(rest: &[char]) -> Option<usize> {
    let prefix = if matches!(rest[0], 'b' | 'c') { 2 } else { 1 };
    if *rest.get(prefix - 1)? != 'r' {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    let start = prefix + hashes;
    if *rest.get(start)? != '"' {
        return None;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let inside = rest[start + 1..].windows(closing.len()).position(|window| window == closing);
    Some(inside.map_or(rest.len(), |inside| start + 1 + inside + closing.len()))
}

/// A literal in single or double quotes, escapes included.
fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != rest[0] {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn char_or_lifetime(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => quoted(rest),
        _ => 1 + rest[1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count(),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
