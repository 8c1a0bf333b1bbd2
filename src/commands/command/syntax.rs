//! The notation of a row's `syntax` line, and its parser: it makes the tree of arguments that COMMAND DOCS returns.
//!
//! | notation | meaning |
//! |---|---|
//! | `seconds` | an argument, whose type follows from its name |
//! | `KEEPTTL` | a literal word; `""` is the empty one |
//! | `EX seconds` | an argument after a literal word, its token; with several arguments the token is their block's |
//! | `[...]` | optional |
//! | `a\|b` | one of them; `<a\|b>` where it may not be left out |
//! | `key [key ...]` | as often as wanted; likewise `score member [score member ...]` |
//! | `<a b ...>` | these, once or more |
//! | `label:x` | `x` has that name: a choice `condition:[NX\|XX]`, a block `range:<start end>`, a word `change:CH` |
//! | `addr:ip:port` | an argument that is called `addr` and shown as `ip:port` |
//!
//! Without a label an argument or a literal word has itself as its name, a group the name of its token, and a block
//! without a token the name `data`. A choice without a token needs a label.
//!
//! Invariant: the syntax line of every row can be parsed, and every word of it is in the tree; the tests parse all
//! rows.
//!
//! Cost: a few small allocations per argument, when COMMAND DOCS is called.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// An argument or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The argument's name, which may differ from the displayed text.
    pub name: String,
    /// The displayed text in a syntax line; empty for a group.
    pub display: String,
    /// The type of the argument.
    pub shape: Shape,
    /// The literal word before the argument, or the argument itself if it is one.
    pub token: Option<String>,
    /// The argument may be omitted.
    pub optional: bool,
    /// The argument may be repeated.
    pub multiple: bool,
    /// When the argument is repeated, its token is repeated, too.
    pub multiple_token: bool,
}

/// The type of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A key.
    Key,
    /// Any bytes.
    Text,
    /// An integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A glob pattern.
    Pattern,
    /// A time, in unix seconds or milliseconds.
    UnixTime,
    /// The literal word itself, without an argument.
    Token,
    /// One of several alternatives.
    OneOf(Vec<Argument>),
    /// These arguments, one after the other.
    Block(Vec<Argument>),
}

impl Shape {
    /// The type's name in COMMAND DOCS.
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Key => "key",
            Shape::Text => "string",
            Shape::Integer => "integer",
            Shape::Double => "double",
            Shape::Pattern => "pattern",
            Shape::UnixTime => "unix-time",
            Shape::Token => "pure-token",
            Shape::OneOf(_) => "oneof",
            Shape::Block(_) => "block",
        }
    }

    /// The arguments that a group consists of.
    pub fn members(&self) -> &[Argument] {
        match self {
            Shape::OneOf(members) | Shape::Block(members) => members,
            _ => &[],
        }
    }
}

/// A `syntax` line for people: without labels.
pub fn shown(syntax: &str) -> Cow<'_, str> {
    if !syntax.contains(':') {
        return Cow::Borrowed(syntax);
    }
    let words = syntax.split_inclusive(DELIMITERS).map(|word| labelled(word).1);
    words.collect()
}

/// A word's label, if it has one, and the rest of it.
fn labelled(word: &str) -> (Option<&str>, &str) {
    word.split_once(':').map_or((None, word), |(label, rest)| (Some(label), rest))
}

/// The literal word that is written `""`: it has no letters.
const EMPTY: &str = "\"\"";

/// The characters that end a word.
const DELIMITERS: [char; 6] = ['[', ']', '<', '>', '|', ' '];

/// Parses the `syntax` line of a command, whose full name is given in lower case.
pub fn arguments(command: &str, syntax: &str) -> Vec<Argument> {
    let mut reader = Reader { command, text: syntax.chars().peekable() };
    let mut arguments: Vec<Argument> = reader.alternatives().into_iter().flat_map(assemble).collect();
    name_groups(&mut arguments);
    arguments
}

/// Gives default names to groups that have neither label nor token.
fn name_groups(arguments: &mut [Argument]) {
    for argument in arguments {
        let (name, members) = match &mut argument.shape {
            Shape::OneOf(members) => ("choice", members),
            Shape::Block(members) => ("data", members),
            _ => continue,
        };
        if argument.name.is_empty() {
            argument.name = name.to_owned();
        }
        name_groups(members);
    }
}

/// A part of a sequence, before tokens and repetitions are combined.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A literal word.
    Literal(String),
    /// An argument, or a group in `<>`.
    One(Argument),
    /// The content of `[]`, and whether it ends with `...`: then it repeats what precedes it.
    Optional(Vec<Vec<Part>>, bool),
}

struct Reader<'t> {
    command: &'t str,
    text: Peekable<Chars<'t>>,
}

impl Reader<'_> {
    /// Parses sequences between bars, up to a closing bracket or the end.
    fn alternatives(&mut self) -> Vec<Vec<Part>> {
        let mut alternatives = vec![Vec::new()];
        while let Some(symbol) = self.text.next() {
            let part = match symbol {
                ']' | '>' => break,
                '|' => {
                    alternatives.push(Vec::new());
                    continue;
                }
                ' ' => continue,
                first => self.part(first),
            };
            if let Some(sequence) = alternatives.last_mut() {
                sequence.push(part);
            }
        }
        alternatives
    }

    fn part(&mut self, first: char) -> Part {
        match first {
            '[' => {
                let (alternatives, repeats) = self.enclosed();
                Part::Optional(alternatives, repeats)
            }
            '<' => {
                let (alternatives, multiple) = self.enclosed();
                Part::One(Argument { multiple, ..choice(alternatives) })
            }
            first => self.word(first),
        }
    }

    /// Parses the content of brackets, and returns whether it ends with `...`.
    fn enclosed(&mut self) -> (Vec<Vec<Part>>, bool) {
        let mut alternatives = self.alternatives();
        let dots = Part::Literal("...".to_owned());
        let last = alternatives.last_mut();
        let repeats = last.is_some_and(|sequence| sequence.pop_if(|part| *part == dots).is_some());
        (alternatives, repeats)
    }

    fn word(&mut self, first: char) -> Part {
        let mut word = String::from(first);
        while let Some(letter) = self.text.next_if(|letter| !DELIMITERS.contains(letter)) {
            word.push(letter);
        }
        match labelled(&word) {
            (Some(label), "") => match self.text.next() {
                Some(first) => self.part(first).called(label),
                None => Part::Literal(word),
            },
            (Some(label), rest) => self.unlabelled(rest).called(label),
            (None, _) => self.unlabelled(&word),
        }
    }

    fn unlabelled(&self, word: &str) -> Part {
        if word.contains(|letter: char| letter.is_ascii_lowercase()) {
            let shape = shape_of(self.command, word);
            Part::One(Argument { name: word.to_owned(), display: word.to_owned(), shape, ..UNNAMED })
        } else {
            Part::Literal(word.to_owned())
        }
    }
}

impl Part {
    /// True if a literal word before this part is its token.
    fn takes_token(&self) -> bool {
        matches!(self, Part::One(argument) if !argument.optional && argument.shape != Shape::Token)
    }

    /// Returns this argument with a name of its own.
    fn called(self, label: &str) -> Part {
        match self {
            Part::One(argument) => Part::One(argument.called(label)),
            Part::Literal(word) => Part::One(literal(&word).called(label)),
            Part::Optional(alternatives, true) => {
                let repeated = Argument { optional: true, multiple: true, ..choice(alternatives) };
                Part::One(repeated.called(label))
            }
            Part::Optional(alternatives, false) => {
                Part::One(Argument { optional: true, ..choice(alternatives) }.called(label))
            }
        }
    }
}

impl Argument {
    fn called(mut self, label: &str) -> Argument {
        self.name = label.to_owned();
        if self.shape == Shape::Token {
            self.display = label.to_owned();
        }
        self
    }
}

const UNNAMED: Argument = Argument {
    name: String::new(),
    display: String::new(),
    shape: Shape::Text,
    token: None,
    optional: false,
    multiple: false,
    multiple_token: false,
};

fn literal(word: &str) -> Argument {
    let word = if word == EMPTY { "" } else { word };
    let name = word.to_ascii_lowercase();
    Argument { display: name.clone(), name, shape: Shape::Token, token: Some(word.to_owned()), ..UNNAMED }
}

fn choice(alternatives: Vec<Vec<Part>>) -> Argument {
    let mut members: Vec<Argument> = alternatives.into_iter().map(|parts| group(assemble(parts))).collect();
    match members.len() {
        1 => members.remove(0),
        _ => Argument { shape: Shape::OneOf(members), ..UNNAMED },
    }
}

/// One argument that combines all of them.
fn group(mut arguments: Vec<Argument>) -> Argument {
    match arguments.len() {
        1 => arguments.remove(0),
        _ => Argument { shape: Shape::Block(arguments), ..UNNAMED },
    }
}

/// Combines the parts of a sequence: literal words with their arguments, and repetitions with the part that they
/// repeat.
fn assemble(parts: Vec<Part>) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::One(argument) => arguments.push(argument),
            Part::Optional(alternatives, true) => repeat(alternatives, &mut arguments),
            Part::Optional(alternatives, false) => {
                arguments.push(Argument { optional: true, ..choice(alternatives) });
            }
            Part::Literal(word) if parts.peek().is_some_and(Part::takes_token) => {
                arguments.extend(after_token(word, assemble(parts.collect())));
                break;
            }
            Part::Literal(word) => arguments.push(literal(&word)),
        }
    }
    arguments
}

/// Adds a token to the arguments that follow it: to a single argument or a block of plain arguments, otherwise to the
/// first argument.
fn after_token(token: String, mut arguments: Vec<Argument>) -> Vec<Argument> {
    let is_plain = |argument: &Argument| argument.shape.members().is_empty() && !argument.optional;
    if arguments.len() > 1 && arguments.iter().all(is_plain) {
        let name = token.to_ascii_lowercase();
        return vec![Argument { name, shape: Shape::Block(arguments), token: Some(token), ..UNNAMED }];
    }
    if let Some(first) = arguments.first_mut() {
        if first.name.is_empty() {
            first.name = token.to_ascii_lowercase();
        }
        first.token = Some(token);
    }
    arguments
}

/// Marks the part before `[... ...]` as repeated if it equals the content; otherwise the content is optional.
///
/// In `GET pattern [GET pattern ...]` the first token is not in `before`: the caller adds it in front of the whole.
fn repeat(mut alternatives: Vec<Vec<Part>>, before: &mut Vec<Argument>) {
    let repeated = match alternatives.len() {
        1 => assemble(alternatives.remove(0)),
        _ => vec![choice(alternatives)],
    };
    if let Some(once) = take_end(before, &repeated) {
        before.push(Argument { multiple: true, ..once });
        return;
    }
    let all = group(repeated);
    let bare = Argument { token: None, ..all.clone() };
    let again = take_end(before, bare.shape.members()).or_else(|| take_end(before, std::slice::from_ref(&bare)));
    before.push(match again {
        Some(once) => Argument { name: all.name, multiple: true, multiple_token: true, ..once },
        None => Argument { optional: true, multiple: true, ..all },
    });
}

/// Removes `end` from the end of `arguments` and returns it as one argument.
fn take_end(arguments: &mut Vec<Argument>, end: &[Argument]) -> Option<Argument> {
    let start = arguments.len().checked_sub(end.len())?;
    (!end.is_empty() && arguments[start..] == *end).then(|| group(arguments.split_off(start)))
}

/// The type of an argument, which follows from its name except for a few commands.
fn shape_of(command: &str, name: &str) -> Shape {
    match EXCEPTIONS.iter().find(|(commands, names, _)| commands.contains(&command) && names.contains(&name)) {
        Some((_, _, shape)) => shape.clone(),
        None if lists(KEYS, name) => Shape::Key,
        None if lists(INTEGERS, name) => Shape::Integer,
        None if lists(DOUBLES, name) => Shape::Double,
        None if name == "pattern" => Shape::Pattern,
        None if name.starts_with("unix-time") => Shape::UnixTime,
        None => Shape::Text,
    }
}

fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

/// Names of arguments that are keys.
const KEYS: &str = "key destination source storekey storedistkey key1 key2 dst src newkey destkey sourcekey";

/// Names of arguments that are integers.
const INTEGERS: &str = "\
    count start end numkeys weight offset seconds numfields port timeout cursor ttl frequency stop bit \
    increment decrement index version index1 index2 milliseconds destination-db client-id maxage len \
    min-match-len start-slot end-slot config-epoch slot cluster-bus-port entries-added limit bits db \
    entries-read numreplicas protover ms numlocal rank num-matches";

/// Names of arguments that are floating-point numbers.
const DOUBLES: &str = "min max radius longitude latitude width height score";

/// Names of arguments that have an unusual type in certain commands.
const EXCEPTIONS: &[(&[&str], &[&str], Shape)] = &[
    (&["zrange", "zrangestore"], &["start", "stop", "min", "max"], Shape::Text),
    (&["zlexcount", "zrangebylex", "zrevrangebylex", "zremrangebylex"], &["min", "max"], Shape::Text),
    (&["xrange", "xrevrange", "xpending", "xautoclaim"], &["start", "end"], Shape::Text),
    (&["blmove", "blmpop", "blpop", "brpop", "brpoplpush"], &["timeout"], Shape::Double),
    (&["bzmpop", "bzpopmax", "bzpopmin"], &["timeout"], Shape::Double),
    (&["incrbyfloat", "hincrbyfloat"], &["increment"], Shape::Double),
    (&["setbit", "bitfield"], &["value"], Shape::Integer),
    (&["xpending"], &["min-idle-time"], Shape::Integer),
    (&["cluster|keyslot"], &["key"], Shape::Text),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in a compact notation: `name:type`, `TOKEN>`, and `?`, `*`, `+` for optional, multiple and multiple
    /// with its token.
    fn drawn(arguments: &[Argument]) -> String {
        let says = |argument: &Argument, token: &str| argument.name.eq_ignore_ascii_case(token);
        let draw = |argument: &Argument| {
            let token = argument.token.as_ref().map(|token| format!("{token}>")).unwrap_or_default();
            let marks = [(argument.optional, "?"), (argument.multiple, "*"), (argument.multiple_token, "+")];
            let marks: String = marks.into_iter().filter_map(|(is_set, mark)| is_set.then_some(mark)).collect();
            let body = match &argument.shape {
                Shape::OneOf(members) => format!("{}<{}>", argument.name, drawn(members)),
                Shape::Block(members) => format!("{}({})", argument.name, drawn(members)),
                Shape::Token if argument.token.as_deref().is_some_and(|token| says(argument, token)) => String::new(),
                Shape::Token => argument.name.clone(),
                shape if argument.name == argument.display => format!("{}:{}", argument.name, shape.name()),
                shape => format!("{}={}:{}", argument.name, argument.display, shape.name()),
            };
            format!("{token}{body}{marks}")
        };
        arguments.iter().map(draw).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_syntax_line_becomes_a_tree_of_arguments() {
        let table = [
            ("", ""),
            ("key", "key:key"),
            ("key [key ...]", "key:key*"),
            ("[section [section ...]]", "section:string?*"),
            ("[key ...]", "key:key?*"),
            ("key score member [score member ...]", "key:key data(score:double member:string)*"),
            ("[NX|XX] [CH]", "choice<NX> XX>>? CH>?"),
            ("[EX seconds|KEEPTTL]", "choice<EX>seconds:integer KEEPTTL>>?"),
            ("<LEFT | RIGHT>", "choice<LEFT> RIGHT>>"),
            ("[AGGREGATE <SUM|MIN>]", "AGGREGATE>aggregate<SUM> MIN>>?"),
            ("[LIMIT offset count]", "LIMIT>limit(offset:integer count:integer)?"),
            ("[COUNT count [ANY]]", "data(COUNT>count:integer ANY>?)?"),
            ("[WEIGHTS weight [weight ...]]", "WEIGHTS>weight:integer?*"),
            ("[GET pattern [GET pattern ...]]", "GET>pattern:pattern?*+"),
            ("[GET bits at [GET bits at ...]]", "GET>get(bits:integer at:string)?*+"),
            ("<host port|NO ONE>", "choice<data(host:string port:integer) data(NO> ONE>)>"),
            ("[TYPE <A|B>] [x [x ...]]", "TYPE>type<A> B>>? x:string?*"),
            ("STREAMS key [key ...] id [id ...]", "STREAMS>streams(key:key* id:string*)"),
            ("BYBOX width height <M|KM>", "BYBOX>width:double height:double choice<M> KM>>"),
            ("condition:[NX|XX] [change:CH]", "condition<NX> XX>>? CH>change?"),
            ("[ADDR addr:ip:port]", "ADDR>addr=ip:port:string?"),
            ("range:<start end ...>", "range(start:integer end:integer)*"),
            ("[GET by:pattern [GET by:pattern ...]]", "GET>by=pattern:pattern?*+"),
            ("<a|new:<[ID b]|[SKIP skip:<A|B>] ...>>", "choice<a:string new<ID>b:string? SKIP>skip<A> B>>?>*>"),
            ("block:[COUNT count [ANY]]", "block(COUNT>count:integer ANY>?)?"),
            (
                "way:[GET get-block:<bits at>|x:<[OF of:<A|B>] y> ...]",
                "way<GET>get-block(bits:integer at:string) x(OF>of<A> B>>? y:string)>?*",
            ),
            ("operator:[equal:=|about:~] threshold", "operator<=>equal ~>about>? threshold:string"),
        ];
        for (syntax, tree) in table {
            assert_eq!(drawn(&arguments("x", syntax)), tree, "{syntax}");
        }
    }

    #[test]
    fn a_syntax_line_is_shown_without_its_labels() {
        assert_eq!(shown("key condition:[NX|XX] [change:CH] [ADDR addr:ip:port]"), "key [NX|XX] [CH] [ADDR ip:port]");
    }

    #[test]
    fn the_type_of_a_bound_depends_on_its_command() {
        assert_eq!(drawn(&arguments("zcount", "min max")), "min:double max:double");
        assert_eq!(drawn(&arguments("zlexcount", "min max")), "min:string max:string");
    }
}
