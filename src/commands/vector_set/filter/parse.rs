//! The tokens of an expression.

use super::{MAX_DIGITS, Operator, Token, Value, whole_number};

/// The operators by their texts. The longest one that fits is taken.
const OPERATORS: [(&str, Operator); 21] = [
    ("(", Operator::Open),
    (")", Operator::Close),
    ("!", Operator::Not),
    ("not", Operator::Not),
    ("**", Operator::Power),
    ("*", Operator::Multiply),
    ("/", Operator::Divide),
    ("%", Operator::Modulo),
    ("+", Operator::Add),
    ("-", Operator::Subtract),
    (">", Operator::Greater),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    ("<=", Operator::LessOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("in", Operator::In),
    ("and", Operator::And),
    ("&&", Operator::And),
    ("or", Operator::Or),
    ("||", Operator::Or),
];

/// Splits an expression into its tokens.
///
/// # Errors
/// The place of a syntax error.
pub(super) fn tokens(text: &[u8]) -> Result<Vec<Token>, usize> {
    let (mut cursor, mut tokens) = (Cursor { text, place: 0 }, Vec::new());
    loop {
        cursor.skip_spaces();
        let Some(first) = cursor.peek(0) else { return Ok(tokens) };
        // A minus behind a value is an operator.
        let may_be_signed = match tokens.last() {
            None => true,
            Some(Token::Operator(operator)) => *operator != Operator::Close,
            Some(Token::Value(_) | Token::Field(_)) => false,
        };
        let is_number = |place| cursor.peek(place).is_some_and(|byte| byte.is_ascii_digit());
        let token = match first {
            b'-' if may_be_signed && is_number(1) => cursor.number().map(Token::Value),
            _ if is_number(0) => cursor.number().map(Token::Value),
            b'"' | b'\'' => cursor.quoted().map(Token::Value),
            b'.' if cursor.peek(1).is_none_or(is_of_name) => Some(Token::Field(cursor.field())),
            b'[' => cursor.list().map(Token::Value),
            _ if is_of_operator(first) => cursor.operator(),
            _ => None,
        };
        tokens.push(token.ok_or(cursor.place)?);
    }
}

fn is_of_operator(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || b"+-*%/!()<>=|&".contains(&byte)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
}

/// Whether a byte is white space, as `isspace` of C says.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// A place in an expression. What fails to be read leaves it where the error is.
struct Cursor<'t> {
    text: &'t [u8],
    place: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.place + ahead).copied()
    }

    fn skip_spaces(&mut self) {
        self.take_while(is_space);
    }

    /// Takes the bytes up to the first that is not accepted.
    fn take_while(&mut self, accepts: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = &self.text[self.place..];
        let length = rest.iter().position(|byte| !accepts(*byte)).unwrap_or(rest.len());
        self.place += length;
        &rest[..length]
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.place;
        if self.peek(0) == Some(b'-') {
            self.place += 1;
        }
        self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E'));
        if self.place - start > MAX_DIGITS {
            self.place = start + MAX_DIGITS;
            return None;
        }
        let digits = &self.text[start..self.place];
        whole_number(digits).map(Value::Number)
    }

    /// A text between quotes. A quote after a backslash does not end the text; the backslash stays.
    fn quoted(&mut self) -> Option<Value> {
        let quote = self.peek(0)?;
        self.place += 1;
        let start = self.place;
        loop {
            match self.peek(0)? {
                b'\\' if self.peek(1).is_some() => self.place += 2,
                byte if byte == quote => break,
                _ => self.place += 1,
            }
        }
        self.place += 1;
        Some(Value::Text(self.text[start..self.place - 1].into()))
    }

    fn field(&mut self) -> Box<[u8]> {
        self.place += 1;
        self.take_while(is_of_name).into()
    }

    /// Numbers and texts between brackets.
    fn list(&mut self) -> Option<Value> {
        self.place += 1;
        let mut values = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek(0)? {
                b']' => break,
                b'"' | b'\'' => values.push(self.quoted()?),
                byte if byte == b'-' || byte.is_ascii_digit() => values.push(self.number()?),
                _ => return None,
            }
            self.skip_spaces();
            match self.peek(0)? {
                b',' => self.place += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.place += 1;
        Some(Value::List(values))
    }

    fn operator(&mut self) -> Option<Token> {
        let rest = &self.text[self.place..];
        if rest.starts_with(b"null") && !rest.get(4).is_some_and(|byte| is_of_operator(*byte)) {
            self.place += 4;
            return Some(Token::Value(Value::Null));
        }
        let fitting = OPERATORS.iter().filter(|(text, _)| rest.starts_with(text.as_bytes()));
        let Some((text, operator)) = fitting.max_by_key(|(text, _)| text.len()) else {
            // The error is behind all letters and signs.
            self.take_while(is_of_operator);
            return None;
        };
        self.place += text.len();
        Some(Token::Operator(*operator))
    }
}
