//! COMMAND INFO's reply for one command: ten fields in a fixed order, which clients read by position.

use crate::engine::{Begin, Command, Entry, Find, KeySpec};
use crate::resp::Reply;

/// Writes the fields of one command and, nested, of its subcommands.
pub(super) fn write(reply: &mut Reply<'_>, entry: &Entry) {
    write_command(reply, &entry.name, entry.command);
}

fn write_command(reply: &mut Reply<'_>, name: &str, command: &Command) {
    let range = command.key_range();
    reply.array(10);
    reply.bulk(name.as_bytes());
    reply.integer(command.arity.signed());
    write_names(reply, command.all_flags().names());
    for place in [range.first, range.last, range.step] {
        reply.integer(place.into());
    }
    write_names(reply, command.categories().map(|category| format!("@{category}")));
    reply.set(command.tips.len());
    for tip in command.tips {
        reply.bulk(tip.as_bytes());
    }
    reply.set(command.keys.len());
    for spec in command.keys {
        write_key_spec(reply, spec);
    }
    match command.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    for subcommand in command.subcommands {
        let full_name = format!("{name}|{}", subcommand.name.to_ascii_lowercase());
        write_command(reply, &full_name, subcommand);
    }
}

/// A set of simple strings.
pub(super) fn write_names(reply: &mut Reply<'_>, names: impl Iterator<Item = impl AsRef<str>>) {
    let names: Vec<_> = names.collect();
    reply.set(names.len());
    for name in names {
        reply.simple(name.as_ref());
    }
}

fn write_key_spec(reply: &mut Reply<'_>, spec: &KeySpec) {
    reply.map(3 + usize::from(!spec.notes.is_empty()));
    if !spec.notes.is_empty() {
        reply.bulk(b"notes");
        reply.bulk(spec.notes.as_bytes());
    }
    reply.bulk(b"flags");
    write_names(reply, spec.access.names());
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Unknown | Begin::Option(..) => write_rule(reply, "unknown", &[]),
        Begin::Index(index) => write_rule(reply, "index", &[("index", index.into())]),
        Begin::Keyword(keyword, from) | Begin::EachKeyword(keyword, from) => {
            open_rule(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(keyword.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(from.into());
        }
    }
    reply.bulk(b"find_keys");
    match spec.find {
        _ if matches!(spec.begin, Begin::Unknown | Begin::Option(..)) => write_rule(reply, "unknown", &[]),
        Find::Range { last, step, limit } => {
            let fields = [("lastkey", last.into()), ("keystep", step.into()), ("limit", limit.into())];
            write_rule(reply, "range", &fields);
        }
        Find::Count { at, first, step } => {
            let fields = [("keynumidx", at.into()), ("firstkey", first.into()), ("keystep", step.into())];
            write_rule(reply, "keynum", &fields);
        }
    }
}

fn open_rule(reply: &mut Reply<'_>, kind: &str, fields: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn write_rule(reply: &mut Reply<'_>, kind: &str, fields: &[(&str, i64)]) {
    open_rule(reply, kind, fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}
