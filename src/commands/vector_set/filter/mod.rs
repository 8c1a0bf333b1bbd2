//! FILTER of VSIM: a condition for the attributes of elements, such as `.year > 2000 and .genre in ["drama", "war"]`.
//!
//! ```text
//! text --tokens--> values and operators --parse--> steps in postfix order --run on a stack--> true or false
//! ```
//!
//! An expression has numbers, texts, lists, fields of the attributes (`.year`), and operators. An operand of
//! the wrong type counts as a number: a text that is one as that number, anything else as 0. An element without one of
//! the fields matches no expression that reads it.
//!
//! Redis's language as it is, with its quirks: `null` in an expression is read and ignored, `!!x` is an error, and
//! errors behind the tokens are reported at the beginning. Attributes are read leniently ([`attributes`]).

mod attributes;
mod parse;
#[cfg(test)]
mod tests;

use crate::script::read_number;
use attributes::field;
use parse::tokens;
use std::borrow::Cow;

/// A condition, in steps that are run on a stack of values.
#[derive(Debug)]
pub(super) struct Filter {
    steps: Vec<Step>,
}

/// A step of a condition.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Push(Value),
    /// Pushes the value of a field.
    PushField(Box<[u8]>),
    /// Replaces the last values by a result.
    Apply(Operator),
}

/// A value of an expression, or of a field.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Text(Box<[u8]>),
    List(Vec<Value>),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Open,
    Close,
    Not,
    Power,
    Multiply,
    Divide,
    Modulo,
    Add,
    Subtract,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    In,
    And,
    Or,
}

impl Operator {
    /// An operator of higher precedence is applied first.
    fn precedence(self) -> u8 {
        match self {
            Operator::Open | Operator::Close => 7,
            Operator::Not => 6,
            Operator::Power => 5,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 4,
            Operator::Add | Operator::Subtract => 3,
            Operator::And => 1,
            Operator::Or => 0,
            _ => 2,
        }
    }

    /// The number of values that it is applied to.
    fn arity(self) -> usize {
        match self {
            Operator::Open | Operator::Close => 0,
            Operator::Not => 1,
            _ => 2,
        }
    }
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Value(Value),
    Field(Box<[u8]>),
    Operator(Operator),
}

impl Filter {
    /// Parses an expression up to its first NUL.
    ///
    /// # Errors
    /// The place at which Redis says that the syntax error is.
    pub(super) fn parse(text: &[u8]) -> Result<Filter, usize> {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut yard = ShuntingYard::default();
        for token in tokens(text)? {
            match token {
                // The word `null` is no value.
                Token::Value(Value::Null) => {}
                Token::Value(value) => yard.push(Step::Push(value)),
                Token::Field(name) => yard.push(Step::PushField(name)),
                Token::Operator(operator) => yard.operator(operator).ok_or(0_usize)?,
            }
        }
        yard.finish().map(|steps| Filter { steps }).ok_or(0)
    }

    /// Whether an element with these attributes meets the condition.
    pub(super) fn matches(&self, attributes: &[u8]) -> bool {
        let mut stack: Vec<Cow<'_, Value>> = Vec::new();
        for step in &self.steps {
            let value = match step {
                Step::Push(value) => Cow::Borrowed(value),
                Step::PushField(name) => match field(attributes, name) {
                    Some(value) => Cow::Owned(value),
                    None => return false,
                },
                Step::Apply(operator) => {
                    let last = stack.pop().unwrap_or(Cow::Owned(Value::Null));
                    let first = if operator.arity() == 2 { stack.pop() } else { None };
                    Cow::Owned(operator.apply(&first.unwrap_or(Cow::Owned(Value::Null)), &last))
                }
            };
            stack.push(value);
        }
        stack.pop().is_some_and(|result| result.is_true())
    }
}

/// Brings values and operators into the order in which they are run (Dijkstra's algorithm of that name).
#[derive(Default)]
struct ShuntingYard {
    steps: Vec<Step>,
    /// Operators that wait for their last operand.
    waiting: Vec<Operator>,
    /// The values that are then on the stack.
    depth: usize,
}

impl ShuntingYard {
    fn push(&mut self, step: Step) {
        self.steps.push(step);
        self.depth += 1;
    }

    /// Adds an operator; `None` if one before it lacks a value, or a parenthesis its beginning.
    fn operator(&mut self, operator: Operator) -> Option<()> {
        match operator {
            Operator::Open => {}
            Operator::Close => loop {
                match self.waiting.pop()? {
                    Operator::Open => return Some(()),
                    before => self.apply(before)?,
                }
            },
            _ => {
                while let Some(&before) = self.waiting.last() {
                    let is_later = before.precedence() < operator.precedence()
                        || operator == Operator::Power && before.precedence() == operator.precedence();
                    if before == Operator::Open || is_later {
                        break;
                    }
                    self.waiting.pop();
                    self.apply(before)?;
                }
            }
        }
        self.waiting.push(operator);
        Some(())
    }

    fn apply(&mut self, operator: Operator) -> Option<()> {
        self.depth = self.depth.checked_sub(operator.arity())? + 1;
        self.steps.push(Step::Apply(operator));
        Some(())
    }

    /// The steps; `None` if a parenthesis is open, a value is missing, or there are several results.
    fn finish(mut self) -> Option<Vec<Step>> {
        while let Some(operator) = self.waiting.pop() {
            (operator != Operator::Open).then_some(())?;
            self.apply(operator)?;
        }
        (self.depth == 1).then_some(self.steps)
    }
}

/// The longest text of a number.
const MAX_DIGITS: usize = 255;

/// The number that a text is, if all of it is one.
fn whole_number(text: &[u8]) -> Option<f64> {
    read_number(text).filter(|(_, length)| *length == text.len()).map(|(number, _)| number)
}

impl Value {
    fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::Text(text) if text.len() <= MAX_DIGITS => {
                let digits = text.split(|byte| *byte == 0).next().unwrap_or_default();
                let digits = &digits[digits.iter().take_while(|byte| parse::is_space(**byte)).count()..];
                whole_number(digits).unwrap_or(0.0)
            }
            _ => 0.0,
        }
    }

    fn is_true(&self) -> bool {
        match self {
            Value::Number(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(_) => true,
            Value::Null => false,
        }
    }

    fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Text(one), Value::Text(other)) => one == other,
            (Value::Null, other) | (other, Value::Null) => *other == Value::Null,
            (one, other) => one.number() == other.number(),
        }
    }
}

impl Operator {
    fn apply(self, first: &Value, last: &Value) -> Value {
        let (one, other) = (|| first.number(), || last.number());
        let truth = |is_true: bool| f64::from(u8::from(is_true));
        Value::Number(match self {
            Operator::Not => truth(!last.is_true()),
            Operator::Power => one().powf(other()),
            Operator::Multiply => one() * other(),
            Operator::Divide => one() / other(),
            Operator::Modulo => one() % other(),
            Operator::Add => one() + other(),
            Operator::Subtract => one() - other(),
            Operator::Greater => truth(one() > other()),
            Operator::GreaterOrEqual => truth(one() >= other()),
            Operator::Less => truth(one() < other()),
            Operator::LessOrEqual => truth(one() <= other()),
            Operator::Equal => truth(first.equals(last)),
            Operator::NotEqual => truth(!first.equals(last)),
            Operator::In => match last {
                Value::List(values) => truth(values.iter().any(|value| first.equals(value))),
                _ => 0.0,
            },
            Operator::And => truth(first.is_true() && last.is_true()),
            Operator::Or => truth(first.is_true() || last.is_true()),
            Operator::Open | Operator::Close => 0.0,
        })
    }
}
