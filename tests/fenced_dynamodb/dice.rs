//! Choices drawn by proptest, so that a failing case shrinks: towards zeros, and towards fewer choices.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::ground::{n, s};

/// The attributes that cases use: some contain the word SET, some are it.
pub const NAMES: [&str; 8] = ["total", "asset", "set", "SET", "setting", "re set", "tags", "list"];

#[derive(Clone, Debug)]
pub struct Dice(Vec<u8>);

impl Dice {
    pub fn new(mut throws: Vec<u8>) -> Self {
        throws.reverse();
        Self(throws)
    }

    pub fn below(&mut self, sides: usize) -> usize {
        usize::from(self.0.pop().unwrap_or(0)) % sides
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        // What it shrinks to is "no".
        self.below(sides) == sides - 1
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// In any order.
    pub fn shuffled<T>(&mut self, mut rest: Vec<T>) -> Vec<T> {
        let mut all = Vec::new();
        while !rest.is_empty() {
            all.push(rest.remove(self.below(rest.len())));
        }
        all
    }

    /// In any case.
    fn word(&mut self, word: &str) -> String {
        match self.below(3) {
            0 => word.to_owned(),
            1 => word.to_lowercase(),
            _ => word.chars().enumerate().map(|(at, c)| if at % 2 == 0 { c } else { c.to_ascii_lowercase() }).collect(),
        }
    }

    fn space(&mut self) -> &'static str {
        [" ", "  ", "\n", "\t "][self.below(4)]
    }
}

/// What a write carries besides its key: an update expression, a condition, and the operands of both.
#[derive(Clone, Debug, Default)]
pub struct Expressions {
    pub update: Option<String>,
    pub condition: Option<String>,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
}

impl Expressions {
    pub fn drawn(dice: &mut Dice, with_update: bool) -> Self {
        let mut drawn = Self::default();
        if with_update && !dice.one_in(6) {
            drawn.update = Some(drawn.update(dice));
        }
        if dice.below(3) > 0 {
            drawn.condition = Some(drawn.condition(dice, 3));
        }
        if dice.one_in(12) {
            drawn.condition = Some(drawn.breaking_out(dice));
        }
        drawn
    }

    /// By a placeholder, which may look like the keyword or like one of the fence's own, or bare where that is allowed.
    fn name(&mut self, dice: &mut Dice, name: &str) -> String {
        if matches!(name, "asset" | "setting" | "tags") && dice.below(2) == 0 {
            return name.to_owned();
        }
        let at = NAMES.iter().position(|known| *known == name).expect("one of the names");
        let forms =
            [format!("#n{at}"), format!("#n{at}_set"), format!("#set{at}"), format!("#lh_fence{}", "_".repeat(at))];
        let placeholder = dice.of(&forms).clone();
        self.names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }

    fn value(&mut self, dice: &mut Dice, value: AttributeValue) -> String {
        let at = self.values.len();
        let forms = [
            format!(":v{at}"),
            format!(":v{at}_set"),
            format!(":set{at}"),
            format!(":lh_fence_token{}", "_".repeat(at)),
        ];
        let placeholder = dice.of(&forms).clone();
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// Each attribute at most once, in clauses of any kind and order.
    fn update(&mut self, dice: &mut Dice) -> String {
        const SET: usize = 0;
        const REMOVE: usize = 1;
        const ADD: usize = 2;
        const DELETE: usize = 3;
        const NONE: usize = 4;
        let mut clauses: [Vec<String>; 4] = Default::default();
        for name in NAMES {
            let clause = *dice.of(&[SET, SET, REMOVE, ADD, DELETE, NONE, NONE]);
            if clause == NONE {
                continue;
            }
            let path = self.name(dice, name);
            let action = match clause {
                SET => format!("{path}{}={}", dice.space(), self.operand(dice, &path)),
                REMOVE => path,
                ADD => format!("{path} {}", self.value(dice, n(1))),
                _ => format!("{path} {}", self.value(dice, AttributeValue::Ss(vec!["x".into()]))),
            };
            clauses[clause].push(action);
        }
        let clauses = ["SET", "REMOVE", "ADD", "DELETE"].into_iter().zip(clauses).filter(|(_, all)| !all.is_empty());
        let clauses = dice.shuffled(clauses.collect());
        let written: Vec<String> = clauses
            .into_iter()
            .map(|(keyword, actions)| format!("{}{}{}", dice.word(keyword), dice.space(), actions.join(",")))
            .collect();
        written.join(dice.space())
    }

    fn operand(&mut self, dice: &mut Dice, path: &str) -> String {
        match dice.below(4) {
            0 => self.value(dice, n(7)),
            1 => self.value(dice, s("set")),
            2 => format!("if_not_exists({path}, {})", self.value(dice, n(5))),
            _ => format!("{path} - {}", self.value(dice, n(2))),
        }
    }

    fn condition(&mut self, dice: &mut Dice, depth: usize) -> String {
        let kind = if depth == 0 { 0 } else { dice.below(6) };
        match kind {
            0 | 1 => self.comparison(dice),
            2 => {
                let (left, right) = (self.condition(dice, depth - 1), self.condition(dice, depth - 1));
                format!("{left}{}{} {right}", dice.space(), dice.word("AND"))
            }
            3 => {
                let (left, right) = (self.condition(dice, depth - 1), self.condition(dice, depth - 1));
                format!("{left} {}{}{right}", dice.word("OR"), dice.space())
            }
            4 => format!("{}{}{}", dice.word("NOT"), dice.space(), self.condition(dice, depth - 1)),
            _ => format!("({})", self.condition(dice, depth - 1)),
        }
    }

    fn comparison(&mut self, dice: &mut Dice) -> String {
        let name = *dice.of(&NAMES);
        let path = self.name(dice, name);
        match dice.below(6) {
            0 => format!("attribute_exists({path})"),
            1 => format!("attribute_not_exists( {path} )"),
            2 => format!("{path} = {}", self.value(dice, n(5))),
            3 => format!("{path} < {}", self.value(dice, n(6))),
            4 => format!("{path} BETWEEN {} AND {}", self.value(dice, n(1)), self.value(dice, n(9))),
            _ => format!("{path} IN ({}, {})", self.value(dice, n(5)), self.value(dice, s("set"))),
        }
    }

    /// Nothing by itself, but in parentheses an alternative to whatever stands before it.
    fn breaking_out(&mut self, dice: &mut Dice) -> String {
        format!("{}) {} ({}", self.comparison(dice), dice.word("OR"), self.comparison(dice))
    }
}
