//! Generates sample requests from a command's row: the shortest complete one, and one more for each part of its syntax.
//!
//! Nothing here knows a command. The tree of arguments gives the words and their order; a table of examples gives each
//! argument a word by its name. The samples of a command are: all required arguments once; the same with each optional
//! argument, each other choice and each repetition in turn, also inside of groups; and one with every optional argument
//! at once, which often contradicts itself and must then be refused.

use dunlin::commands::command::syntax::{Argument, Shape, arguments};
use dunlin::engine::Entry;

use crate::left_out;

/// A word of a sample, with what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) bytes: Vec<u8>,
    pub(crate) role: Role,
    /// The argument that it is given for; empty for literals.
    pub(crate) argument: String,
}

/// The meaning of a word in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command's name or a literal word of its syntax.
    Literal,
    /// A key; its name is still to be filled in.
    Key,
    /// A number.
    Number,
    /// The end of a range that may be one of ranks, scores or members.
    Bound,
    /// The number of keys that follow.
    KeyCount,
    /// Any other word.
    Text,
}

/// One request.
pub(crate) type Sample = Vec<Word>;

/// All samples of a command, the shortest first.
pub(crate) fn samples(entry: &Entry) -> Vec<Sample> {
    let name: Sample = entry.name.to_ascii_uppercase().split('|').map(literal).collect();
    let arguments = arguments(&entry.name, entry.command.syntax);
    let mut samples: Vec<Sample> = Vec::new();
    for rest in sequences(&arguments) {
        let mut sample = [name.clone(), rest].concat();
        make_consistent(&mut sample);
        if !samples.contains(&sample) && !left_out::sample(&entry.name, &sample) {
            samples.push(sample);
        }
    }
    samples
}

/// A command with each two of its options, in both orders, and each option twice: what goes together and what does not.
pub(crate) fn pairs_of_options(entry: &Entry) -> Vec<Sample> {
    let name: Sample = entry.name.to_ascii_uppercase().split('|').map(literal).collect();
    let arguments = arguments(&entry.name, entry.command.syntax);
    let options: Vec<(usize, Sample)> = (0..arguments.len())
        .filter(|&place| arguments[place].optional)
        .flat_map(|place| variants(&arguments[place]).into_iter().map(move |way| (place, way)))
        .collect();
    let mut pairs = Vec::new();
    for first in &options {
        for second in &options {
            let mut sample = name.clone();
            for (place, argument) in arguments.iter().enumerate() {
                if !argument.optional {
                    sample.extend(variants(argument).into_iter().next().unwrap_or_default());
                }
                // Options that follow one another without a required argument between them may change places.
                let is_last = arguments.get(place + 1).is_none_or(|next| !next.optional);
                let gap = |option: usize| (option..=place).all(|between| arguments[between].optional);
                let here =
                    [first, second].into_iter().filter(|(option, _)| is_last && *option <= place && gap(*option));
                sample.extend(here.flat_map(|(_, way)| way.iter().cloned()));
            }
            make_consistent(&mut sample);
            pairs.push(sample);
        }
    }
    pairs
}

/// The ways to write arguments one after the other.
fn sequences(arguments: &[Argument]) -> Vec<Sample> {
    let ways: Vec<Vec<Sample>> = arguments.iter().map(variants).collect();
    let plain: Vec<Option<&Sample>> =
        arguments.iter().zip(&ways).map(|(argument, ways)| ways.first().filter(|_| !argument.optional)).collect();
    let mut sequences = vec![joined(&plain)];
    for (place, (argument, ways)) in arguments.iter().zip(&ways).enumerate() {
        for way in ways.iter().skip(usize::from(!argument.optional)) {
            let mut chosen = plain.clone();
            chosen[place] = Some(way);
            sequences.push(joined(&chosen));
        }
    }
    if arguments.iter().filter(|argument| argument.optional).count() > 1 {
        sequences.push(joined(&ways.iter().map(|ways| ways.first()).collect::<Vec<_>>()));
    }
    sequences
}

fn joined(parts: &[Option<&Sample>]) -> Sample {
    parts.iter().flatten().flat_map(|part| part.iter().cloned()).collect()
}

/// The ways to write one argument that is not left out.
fn variants(argument: &Argument) -> Vec<Sample> {
    let bare: Vec<Sample> = match &argument.shape {
        Shape::Token => vec![Vec::new()],
        Shape::OneOf(members) => members.iter().flat_map(variants).collect(),
        Shape::Block(members) => sequences(members),
        _ => vec![vec![example(argument)]],
    };
    let token: Sample = argument.token.iter().map(|token| literal(token)).collect();
    let mut variants: Vec<Sample> = bare.iter().map(|way| [token.clone(), way.clone()].concat()).collect();
    if argument.multiple
        && let Some(once) = bare.first()
    {
        let between = if argument.multiple_token { token.clone() } else { Vec::new() };
        variants.push([token, once.clone(), between, again(once)].concat());
    }
    variants
}

fn literal(word: &str) -> Word {
    Word { bytes: word.as_bytes().to_vec(), role: Role::Literal, argument: String::new() }
}

/// A word that fits the argument, by its type and its name.
fn example(argument: &Argument) -> Word {
    let name = argument.name.as_str();
    let (role, word) = match (&argument.shape, name) {
        (Shape::Key, _) => (Role::Key, ""),
        (Shape::Pattern, _) => (Role::Text, "*"),
        (_, "numkeys") => (Role::KeyCount, "1"),
        (_, "min-idle-time") => (Role::Number, "0"),
        (_, "unix-time-seconds") => (Role::Number, "32503680000"),
        (_, "unix-time-milliseconds") => (Role::Number, "32503680000000"),
        (Shape::Text, "min" | "start") => (Role::Bound, "0"),
        (Shape::Text, "max" | "stop" | "end") => (Role::Bound, "1"),
        (_, "start" | "offset" | "cursor") => (Role::Number, "0"),
        (Shape::Integer | Shape::Double | Shape::UnixTime, "stop" | "end") => (Role::Number, "-1"),
        (Shape::Integer | Shape::Double | Shape::UnixTime, "max" | "count" | "weight") => (Role::Number, "2"),
        (Shape::Integer, "seconds" | "milliseconds") => (Role::Number, "100000"),
        (Shape::Integer | Shape::Double | Shape::UnixTime, _) => (Role::Number, "1"),
        (_, "id" | "lastid") => (Role::Text, "2-1"),
        (_, "last-id") => (Role::Text, "9-1"),
        (_, "max-deleted-id") => (Role::Text, "0-0"),
        (_, "member") => (Role::Text, "a"),
        (_, "value") => (Role::Text, "10"),
        (_, "vector") => (Role::Text, "\0\0\u{40}\u{40}\0\0\u{40}\u{40}"),
        _ => (Role::Text, name),
    };
    Word { bytes: word.as_bytes().to_vec(), role, argument: name.to_owned() }
}

/// The words of a repetition: texts differ from those of the first time.
fn again(once: &Sample) -> Sample {
    let other = |word: &Word| match (word.role, word.bytes.as_slice()) {
        (Role::Text, b"a") => Word { bytes: b"b".to_vec(), ..word.clone() },
        _ => word.clone(),
    };
    once.iter().map(other).collect()
}

/// Makes a sample consistent: a count is the number of keys that follow, and a range of members has members as bounds.
fn make_consistent(sample: &mut Sample) {
    for place in 0..sample.len() {
        if sample[place].role == Role::KeyCount {
            let keys = sample[place + 1..].iter().take_while(|word| word.role == Role::Key).count();
            sample[place].bytes = keys.to_string().into_bytes();
        }
    }
    let is_by_member = is_by_member(sample);
    for word in sample.iter_mut().filter(|word| is_by_member && word.role == Role::Bound) {
        word.bytes = if word.bytes == b"0" { b"[a".to_vec() } else { b"[b".to_vec() };
    }
}

/// True when its range is one of members: a word of its syntax contains LEX.
pub(crate) fn is_by_member(sample: &Sample) -> bool {
    let is_lex = |word: &Word| word.bytes.windows(3).any(|window| window == b"LEX");
    sample.iter().any(|word| word.role == Role::Literal && is_lex(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dunlin::commands::FAMILIES;
    use dunlin::engine::{Arity, Flags, Table};

    fn written(command: &str) -> Vec<String> {
        let table = Table::of(FAMILIES);
        let id = table.find_full(command.as_bytes()).expect("there is such a command");
        let word = |word: &Word| match word.role {
            Role::Key => "KEY".to_owned(),
            _ => String::from_utf8_lossy(&word.bytes).into_owned(),
        };
        let sentence = |sample: &Sample| sample.iter().map(word).collect::<Vec<_>>().join(" ");
        samples(table.entry(id)).iter().map(sentence).collect()
    }

    #[test]
    fn a_range_is_sampled_with_each_of_its_options_and_with_all() {
        let expected = [
            "ZRANGE KEY 0 1",
            "ZRANGE KEY 0 1 BYSCORE",
            "ZRANGE KEY [a [b BYLEX",
            "ZRANGE KEY 0 1 REV",
            "ZRANGE KEY 0 1 LIMIT 0 2",
            "ZRANGE KEY 0 1 WITHSCORES",
            "ZRANGE KEY 0 1 BYSCORE REV LIMIT 0 2 WITHSCORES",
        ];
        assert_eq!(written("zrange"), expected);
    }

    #[test]
    fn a_sampled_numkeys_is_the_number_of_keys_that_follow() {
        assert_eq!(written("zintercard"), ["ZINTERCARD 1 KEY", "ZINTERCARD 2 KEY KEY", "ZINTERCARD 1 KEY LIMIT 1"]);
    }

    #[test]
    fn the_shortest_sample_of_every_command_has_the_length_of_its_arity() {
        let table = Table::of(FAMILIES);
        for entry in table.entries().iter().filter(|entry| !crate::left_out::command(&entry.name)) {
            let (Arity::Exactly(words) | Arity::AtLeast(words)) = entry.command.arity;
            // Their handlers check the number of arguments.
            if entry.command.flags.has(Flags::MODULE) {
                continue;
            }
            let shortest = samples(entry).iter().map(Vec::len).min().unwrap_or(0);
            let needs_subcommand = usize::from(entry.command.is_container() && words == 2);
            assert_eq!(shortest + needs_subcommand, usize::from(words), "{}: {}", entry.name, entry.command.syntax);
        }
    }
}
