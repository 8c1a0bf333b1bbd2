//! COMMAND DOCS: the documentation of a command, the tree of its arguments, and the versions of its changes.
//!
//! All of it comes from the row: the tree is parsed from its syntax line, and an argument was introduced by the change
//! in the row's history that names it. Fields have Redis's order.

use super::details::write_names;
use super::syntax::{self, Argument, Shape};
use super::{OPEN, UNORDERED};
use crate::commands::module;
use crate::engine::{Args, Arity, Begin, Change, Command, Ctx, Description, Entry, Error, Family, Flags};
use crate::resp::Reply;

pub(super) const DOCS: Command = Command {
    name: "DOCS",
    syntax: "[command-name [command-name ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: OPEN,
    since: "7.0.0",
    cost: "O(N) where N is the number of commands to look up",
    about: "Returns the documentation of some commands, or of all.",
    tips: UNORDERED,
    run: docs,
    ..Command::ROW
};

fn docs(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let table = &engine.table;
    if args.is_empty() && reply.takes_encoded() {
        reply.map(table.command_count());
        reply.encoded(table.described(Description::Docs, reply.protocol(), write_pair));
        return Ok(());
    }
    let entries: Vec<_> = if args.is_empty() {
        table.commands().collect()
    } else {
        args.rest().filter_map(|name| Some(table.entry(table.find_full(name)?))).collect()
    };
    reply.map(entries.len());
    for entry in entries {
        write_pair(reply, entry);
    }
    Ok(())
}

/// Writes the name of a command and its documentation.
fn write_pair(reply: &mut Reply<'_>, entry: &Entry) {
    reply.bulk(entry.name.as_bytes());
    write(reply, &entry.name, entry.command);
}

fn write(reply: &mut Reply<'_>, name: &str, command: &Command) {
    if command.flags.has(Flags::MODULE) {
        reply.map(2);
        return write_texts(reply, &[("group", command.family.group()), ("module", module::VECTOR_SETS)]);
    }
    let arguments = syntax::arguments(name, command.syntax);
    let doc_flags = doc_flags(command);
    let mut head = vec![("summary", command.about), ("since", command.since), ("group", command.family.group())];
    head.extend((!command.cost.is_empty()).then_some(("complexity", command.cost)));
    let (since, replacement) = command.deprecated.unzip();
    let tail = [("deprecated_since", since), ("replaced_by", replacement)];
    let tail: Vec<_> = tail.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
    let nested = [!command.history.is_empty(), !doc_flags.is_empty(), !arguments.is_empty(), command.is_container()];
    reply.map(head.len() + tail.len() + count(nested));
    write_texts(reply, &head);
    if !doc_flags.is_empty() {
        reply.bulk(b"doc_flags");
        write_names(reply, doc_flags.into_iter());
    }
    write_texts(reply, &tail);
    if !command.history.is_empty() {
        write_history(reply, command.history);
    }
    if !arguments.is_empty() {
        let mut writer = Writer { command, keys_met: 0 };
        writer.arguments(reply, &arguments, None);
    }
    if command.is_container() {
        write_subcommands(reply, name, command.subcommands);
    }
}

fn doc_flags(command: &Command) -> Vec<&'static str> {
    let flags = [(command.deprecated.is_some(), "deprecated"), (command.flags.has(Flags::SYSTEM), "syscmd")];
    flags.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
}

fn write_history(reply: &mut Reply<'_>, history: &[Change]) {
    reply.bulk(b"history");
    reply.set(history.len());
    for change in history {
        reply.array(2);
        reply.bulk(change.version.as_bytes());
        reply.bulk(change.sentence().as_bytes());
    }
}

fn write_subcommands(reply: &mut Reply<'_>, name: &str, subcommands: &[Command]) {
    reply.bulk(b"subcommands");
    reply.map(subcommands.len());
    for subcommand in subcommands {
        let full_name = format!("{name}|{}", subcommand.name.to_ascii_lowercase());
        reply.bulk(full_name.as_bytes());
        write(reply, &full_name, subcommand);
    }
}

fn count<const N: usize>(conditions: [bool; N]) -> usize {
    conditions.into_iter().filter(|&holds| holds).count()
}

fn write_texts(reply: &mut Reply<'_>, texts: &[(&str, &str)]) {
    for (field, text) in texts {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
}

/// Writes the arguments of a command.
struct Writer<'c> {
    command: &'c Command,
    keys_met: usize,
}

impl Writer<'_> {
    /// The arguments of a command or of a group, with the version that introduced the group.
    fn arguments(&mut self, reply: &mut Reply<'_>, arguments: &[Argument], group_since: Option<&str>) {
        reply.bulk(b"arguments");
        reply.array(arguments.len());
        for argument in arguments {
            self.argument(reply, argument, group_since);
        }
    }

    fn argument(&mut self, reply: &mut Reply<'_>, argument: &Argument, group_since: Option<&str>) {
        let members = argument.shape.members();
        let key_spec = match argument.shape {
            Shape::Key => self.next_key_spec(),
            Shape::Pattern => self.unknown_key_spec(),
            _ => None,
        };
        let since = version(self.command.history, Change::is_arrival, argument);
        // The version of an argument is not repeated if its group has the same one.
        let own_since = since.filter(|_| since != group_since);
        let texts = [
            ("token", argument.token.as_deref()),
            ("since", own_since),
            ("deprecated_since", version(self.command.history, Change::is_deprecation, argument)),
        ];
        let texts: Vec<_> = texts.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
        let flags = flags(argument);
        reply.map(3 + texts.len() + count([key_spec.is_some(), !flags.is_empty()]));
        write_texts(reply, &[("name", &argument.name), ("type", argument.shape.name())]);
        if members.is_empty() {
            write_texts(reply, &[("display_text", &argument.display)]);
        }
        if let Some(index) = key_spec {
            reply.bulk(b"key_spec_index");
            reply.integer(index);
        }
        write_texts(reply, &texts);
        if !flags.is_empty() {
            reply.bulk(b"flags");
            write_names(reply, flags.into_iter());
        }
        if !members.is_empty() {
            self.arguments(reply, members, since);
        }
    }

    /// Gives a pattern the key specification of keys that no word names, such as those that SORT reads.
    fn unknown_key_spec(&mut self) -> Option<i64> {
        let index = self.command.keys.iter().position(|spec| spec.begin == Begin::Unknown)?;
        self.keys_met = self.keys_met.max(index + 1);
        Some(index as i64)
    }

    /// Gives each key argument the key specification that finds it; both have the same order.
    fn next_key_spec(&mut self) -> Option<i64> {
        let specs = self.command.keys;
        let last = specs.len().checked_sub(1)?;
        let index = self.keys_met.min(last);
        self.keys_met += 1;
        // One specification may cover several arguments, such as the two keys of LCS.
        let spans_all = specs.len() == 1 && matches!(specs[0].begin, Begin::Index(_));
        Some(if spans_all { 0 } else { index as i64 })
    }
}

fn flags(argument: &Argument) -> Vec<&'static str> {
    let flags =
        [(argument.optional, "optional"), (argument.multiple, "multiple"), (argument.multiple_token, "multiple_token")];
    flags.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
}

/// The version of the first change of this kind that names the argument.
fn version(history: &[Change], is_kind: impl Fn(&Change) -> bool, argument: &Argument) -> Option<&'static str> {
    history.iter().find(|change| is_kind(change) && names(change.words, argument)).map(|change| change.version)
}

/// True if the words name the argument: one of them is its token or, without a token, its name, or they name all
/// alternatives of a choice.
fn names(words: &[&str], argument: &Argument) -> bool {
    let word = argument.token.as_ref().unwrap_or(&argument.name);
    let choice = match &argument.shape {
        Shape::OneOf(members) if argument.token.is_none() => members.as_slice(),
        _ => &[],
    };
    words.contains(&word.as_str()) || (!choice.is_empty() && choice.iter().all(|member| names(words, member)))
}
