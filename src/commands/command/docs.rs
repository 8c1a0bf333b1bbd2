//! COMMAND DOCS: what a command does, in words, and the tree of its arguments.
//!
//! Redis also tells when each argument came and what changed over time; that is not in the rows, so it is left out, as
//! the format allows.

use super::details::write_names;
use super::syntax::{self, Argument, Shape};
use super::{OPEN, UNORDERED};
use crate::engine::{Args, Arity, Begin, Command, Ctx, Error, Family};
use crate::resp::Reply;

pub(super) const DOCS: Command = Command {
    name: "DOCS",
    syntax: "[command-name [command-name ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: OPEN,
    since: "7.0.0",
    cost: "O(N) where N is the number of commands to look up",
    about: "Tells in words what some commands do, or all.",
    tips: UNORDERED,
    run: docs,
    ..Command::ROW
};

fn docs(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let table = &engine.table;
    let entries: Vec<_> = if args.is_empty() {
        table.commands().collect()
    } else {
        args.rest().filter_map(|name| Some(table.entry(table.find_full(name)?))).collect()
    };
    reply.map(entries.len());
    for entry in entries {
        reply.bulk(entry.name.as_bytes());
        write(reply, &entry.name, entry.command);
    }
    Ok(())
}

fn write(reply: &mut Reply<'_>, name: &str, command: &Command) {
    let arguments = syntax::arguments(name, command.syntax);
    let mut texts = vec![("summary", command.about), ("since", command.since), ("group", command.family.group())];
    texts.extend((!command.cost.is_empty()).then_some(("complexity", command.cost)));
    let deprecation = usize::from(command.deprecated.is_some()) * 3;
    let nested = usize::from(!arguments.is_empty()) + usize::from(command.is_container());
    reply.map(texts.len() + deprecation + nested);
    for (field, text) in texts {
        write_text(reply, field, text);
    }
    if let Some((since, replacement)) = command.deprecated {
        reply.bulk(b"doc_flags");
        write_names(reply, ["deprecated"].into_iter());
        write_text(reply, "deprecated_since", since);
        write_text(reply, "replaced_by", replacement);
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        let mut keys = KeysInOrder { command, met: 0 };
        write_arguments(reply, &arguments, &mut keys);
    }
    if command.is_container() {
        reply.bulk(b"subcommands");
        reply.map(command.subcommands.len());
        for subcommand in command.subcommands {
            let full_name = format!("{name}|{}", subcommand.name.to_ascii_lowercase());
            reply.bulk(full_name.as_bytes());
            write(reply, &full_name, subcommand);
        }
    }
}

fn write_text(reply: &mut Reply<'_>, field: &str, text: &str) {
    reply.bulk(field.as_bytes());
    reply.bulk(text.as_bytes());
}

/// Gives each key argument the key specification that finds it: they stand in the same order.
struct KeysInOrder<'c> {
    command: &'c Command,
    met: usize,
}

impl KeysInOrder<'_> {
    fn next(&mut self) -> Option<i64> {
        let specs = self.command.keys;
        let last = specs.len().checked_sub(1)?;
        let index = self.met.min(last);
        self.met += 1;
        // One specification may stand for several arguments, as the two keys of LCS.
        let spans_all = specs.len() == 1 && matches!(specs[0].begin, Begin::Index(_));
        Some(if spans_all { 0 } else { index as i64 })
    }
}

fn write_arguments(reply: &mut Reply<'_>, arguments: &[Argument], keys: &mut KeysInOrder<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        write_argument(reply, argument, keys);
    }
}

fn write_argument(reply: &mut Reply<'_>, argument: &Argument, keys: &mut KeysInOrder<'_>) {
    let members = argument.shape.members();
    let key_spec = if argument.shape == Shape::Key { keys.next() } else { None };
    let flags =
        [(argument.optional, "optional"), (argument.multiple, "multiple"), (argument.multiple_token, "multiple_token")];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect();
    let fields = [members.is_empty(), key_spec.is_some(), argument.token.is_some(), !flags.is_empty()];
    let fields = 2 + fields.into_iter().filter(|&is_there| is_there).count() + usize::from(!members.is_empty());
    reply.map(fields);
    write_text(reply, "name", &argument.name);
    write_text(reply, "type", argument.shape.name());
    if members.is_empty() {
        write_text(reply, "display_text", &argument.name);
    }
    if let Some(index) = key_spec {
        reply.bulk(b"key_spec_index");
        reply.integer(index);
    }
    if let Some(token) = &argument.token {
        write_text(reply, "token", token);
    }
    if !flags.is_empty() {
        reply.bulk(b"flags");
        write_names(reply, flags.into_iter());
    }
    if !members.is_empty() {
        reply.bulk(b"arguments");
        write_arguments(reply, members, keys);
    }
}
