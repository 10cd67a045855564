//! One expression out of two: the fence, and whatever the caller has.
//!
//! What DynamoDB refuses of the caller's own expressions it refuses of the merged ones, and the caller sees why: a
//! fence must not make sense of what has none, and nothing of the caller's may get around it.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::backends::dynamodb::item::number;
use crate::types::FencingToken;

/// The attribute that a write is fenced by, and the writer's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) attribute: String,
    pub(super) token: FencingToken,
}

/// The caller's own expressions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) condition: Option<&'a str>,
    pub(super) update: Option<&'a str>,
    pub(super) names: Option<&'a HashMap<String, String>>,
    pub(super) values: Option<&'a HashMap<String, AttributeValue>>,
}

/// The same under a fence.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) condition: String,
    /// For an update. A put has the token in its item, and a delete has it nowhere.
    pub(super) update: String,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

impl Fence {
    pub(super) fn over(&self, own: Own<'_>) -> Merged {
        let ours = Placeholders::beside(own);
        let mut names = own.names.cloned().unwrap_or_default();
        let mut values = own.values.cloned().unwrap_or_default();
        names.insert(ours.attribute(), self.attribute.clone());
        values.insert(ours.token(), number(self.token.as_u64()));
        values.insert(ours.least(), number(0));
        Merged { condition: ours.condition(own.condition), update: ours.update(own.update), names, values }
    }

    /// The fence that a merged condition is under.
    pub(super) fn of(
        condition: &str,
        names: &HashMap<String, String>,
        values: &HashMap<String, AttributeValue>,
    ) -> Option<Self> {
        names.iter().find_map(|(placeholder, attribute)| {
            let ours = Placeholders { suffix: placeholder.strip_prefix(ATTRIBUTE)?.to_owned() };
            let token = values.get(&ours.token())?.as_n().ok()?.parse().ok().and_then(FencingToken::new)?;
            let is_under_it = condition == ours.fence() || condition.starts_with(&ours.before_own());
            is_under_it.then(|| Self { attribute: attribute.clone(), token })
        })
    }
}

const ATTRIBUTE: &str = "#lh_fence";
const TOKEN: &str = ":lh_fence_token";
const LEAST: &str = ":lh_fence_least";

/// Names for the fence's own operands, which the caller does not use.
struct Placeholders {
    /// As many underscores as it takes.
    suffix: String,
}

impl Placeholders {
    fn beside(own: Own<'_>) -> Self {
        let mut ours = Self { suffix: String::new() };
        while ours.are_used_in(own) {
            ours.suffix.push('_');
        }
        ours
    }

    /// Where an expression uses a name that is not defined, ours must not define it.
    fn are_used_in(&self, own: Own<'_>) -> bool {
        [self.attribute(), self.token(), self.least()].iter().any(|operand| {
            own.names.is_some_and(|names| names.contains_key(operand))
                || own.values.is_some_and(|values| values.contains_key(operand))
                || [own.condition, own.update].iter().flatten().any(|expression| expression.contains(operand))
        })
    }

    fn attribute(&self) -> String {
        format!("{ATTRIBUTE}{}", self.suffix)
    }

    fn token(&self) -> String {
        format!("{TOKEN}{}", self.suffix)
    }

    fn least(&self) -> String {
        format!("{LEAST}{}", self.suffix)
    }

    fn condition(&self, own: Option<&str>) -> String {
        own.map_or_else(|| self.fence(), |own| self.before_own() + &in_parentheses(own))
    }

    /// `BETWEEN` and not `<=`, because a negative number is no token and yet below every one.
    fn fence(&self) -> String {
        let (attribute, token, least) = (self.attribute(), self.token(), self.least());
        format!("attribute_not_exists({attribute}) OR {attribute} BETWEEN {least} AND {token}")
    }

    fn before_own(&self) -> String {
        format!("({}) AND ", self.fence())
    }

    fn update(&self, own: Option<&str>) -> String {
        let assignment = format!("{} = {}", self.attribute(), self.token());
        match own.map(|own| (own, end_of_set(own))) {
            None => format!("SET {assignment}"),
            // DynamoDB refuses it: an expression that was forgotten is no raise.
            Some((own, None)) if own.trim_ascii().is_empty() => own.to_owned(),
            Some((own, None)) => format!("{own} SET {assignment}"),
            Some((own, Some(end))) => format!("{} {assignment},{}", &own[..end], &own[end..]),
        }
    }
}

/// DynamoDB refuses `((..))` as redundant, so what is in parentheses stays as it is. What closes more than it has
/// opened stays, too, and is refused: in parentheses `a) OR (b` would be an alternative to the fence.
fn in_parentheses(own: &str) -> String {
    let own = own.trim_ascii();
    let (mut depth, mut first_end) = (0_usize, None);
    for (at, character) in own.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => return own.to_owned(),
            ')' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            first_end.get_or_insert(at + 1);
        }
    }
    let is_in_them = own.starts_with('(') && first_end == Some(own.len());
    if is_in_them { own.to_owned() } else { format!("({own})") }
}

/// Where the keyword `SET` ends, in any case. It is reserved, so an attribute of that name goes by a placeholder, and
/// an expression has no literals that it could be in.
fn end_of_set(update: &str) -> Option<usize> {
    const SET: &str = "set";
    let is_apart = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let is_no_name = |character: char| is_apart(character) && !matches!(character, '#' | ':' | '.');
    update.char_indices().map(|(start, _)| (start, start + SET.len())).find_map(|(start, end)| {
        let is_keyword = update.get(start..end)?.eq_ignore_ascii_case(SET)
            && update[..start].chars().next_back().is_none_or(is_no_name)
            && update[end..].chars().next().is_none_or(is_apart);
        is_keyword.then_some(end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence() -> Fence {
        Fence { attribute: "fence".into(), token: FencingToken::new(7).unwrap() }
    }

    fn update(own: &str) -> String {
        fence().over(Own { update: Some(own), ..Own::default() }).update
    }

    fn condition(own: &str) -> String {
        fence().over(Own { condition: Some(own), ..Own::default() }).condition
    }

    const SET: &str = "#lh_fence = :lh_fence_token";
    const FENCE: &str = "attribute_not_exists(#lh_fence) OR #lh_fence BETWEEN :lh_fence_least AND :lh_fence_token";

    #[test]
    fn the_token_is_set_in_the_callers_own_clause_or_in_a_new_one() {
        assert_eq!(fence().over(Own::default()).update, format!("SET {SET}"));
        assert_eq!(update("SET a = :a, b = :b"), format!("SET {SET}, a = :a, b = :b"));
        assert_eq!(update("remove a set b = :b add c :c"), format!("remove a set {SET}, b = :b add c :c"));
        assert_eq!(update("REMOVE a[0]\n\tSeT#b=:b"), format!("REMOVE a[0]\n\tSeT {SET},#b=:b"));
        assert_eq!(update("REMOVE a"), format!("REMOVE a SET {SET}"));
    }

    #[test]
    fn a_name_that_contains_the_keyword_is_not_the_keyword() {
        for own in ["REMOVE offset, setting, #set, a.#set, _set, set_, set1", "ADD #set :set", "DELETE #SET :SET"] {
            assert_eq!(update(own), format!("{own} SET {SET}"));
        }
        assert_eq!(update("ADD #set :set SET offset = :set"), format!("ADD #set :set SET {SET}, offset = :set"));
    }

    #[test]
    fn an_own_condition_is_one_operand_whatever_it_is_made_of() {
        assert_eq!(fence().over(Own::default()).condition, FENCE);
        for (own, operand) in [
            ("a = :a", "(a = :a)"),
            ("a = :a OR b = :b", "(a = :a OR b = :b)"),
            ("(a = :a) OR (b = :b)", "((a = :a) OR (b = :b))"),
            ("attribute_exists(a)", "(attribute_exists(a))"),
            (" (a = :a OR b = :b) ", "(a = :a OR b = :b)"),
            ("((a = :a) OR (b = :b))", "((a = :a) OR (b = :b))"),
        ] {
            assert_eq!(condition(own), format!("({FENCE}) AND {operand}"), "{own}");
        }
    }

    #[test]
    fn an_own_condition_that_breaks_out_stays_malformed() {
        let merged = condition("a = :a) OR (b = :b");
        let depths: Vec<i32> = merged
            .chars()
            .scan(0, |depth, character| {
                *depth += i32::from(character == '(') - i32::from(character == ')');
                Some(*depth)
            })
            .collect();
        assert!(depths.contains(&-1), "well-formed, and an alternative to the fence: {merged}");
    }

    #[test]
    fn the_fences_operands_are_never_the_callers() {
        let names = HashMap::from([("#lh_fence".to_owned(), "mine".to_owned())]);
        let values = HashMap::from([(":lh_fence_least_".to_owned(), number(9))]);
        let own = Own {
            condition: Some("#lh_fence > :lh_fence_least_ AND a = :lh_fence_token__"),
            update: None,
            names: Some(&names),
            values: Some(&values),
        };
        let merged = fence().over(own);
        assert_eq!((merged.names["#lh_fence"].as_str(), &merged.values[":lh_fence_least_"]), ("mine", &number(9)));
        assert_eq!(merged.names["#lh_fence___"], "fence");
        assert_eq!(merged.values[":lh_fence_token___"], number(7));
        assert!(!merged.values.contains_key(":lh_fence_token__"), "the caller's mistake has got a meaning");
        assert_eq!(Fence::of(&merged.condition, &merged.names, &merged.values), Some(fence()));
    }

    #[test]
    fn a_condition_under_no_fence_is_told_from_one_under_a_fence() {
        let merged = fence().over(Own { condition: Some("a = :a"), ..Own::default() });
        assert_eq!(Fence::of(&merged.condition, &merged.names, &merged.values), Some(fence()));
        assert_eq!(Fence::of("a = :a", &merged.names, &merged.values), None);
    }
}
