//! DUNLIN TREE: the keys as a tree of namespaces, with exact counts.
//!
//! Few keys are counted at once. Many are counted by the host, which freezes the database and counts without the
//! engine's lock: the counts are those of one moment, and no other client waits for them.

use super::{ROW, explained};
use crate::engine::exec::kit::tree;
use crate::engine::state::DataQuery;
use crate::engine::state::kit::tree::{Child, ChildKind, Figures, Tree, TreeOrder, TreeQuery};
use crate::engine::{Args, Arity, Command, Ctx, Error, HostCall, HostReply, says};
use crate::resp::Reply;
use crate::value::TYPES;

/// The most keys that are counted while all clients wait.
const AT_ONCE: usize = 10_000;
const DEFAULT_DELIMITER: &[u8] = b":";
const DEFAULT_LIMIT: i64 = 100;
/// The most children of each namespace.
const MAX_CHILDREN: i64 = 10_000;
/// The most levels.
const DEEPEST: i64 = 16;

pub(super) const TREE: Command = Command {
    name: "TREE",
    syntax: "[prefix] [DELIMITER delimiter] [DEPTH depth] [LIMIT limit] [ORDER order:<KEYS|BYTES>]",
    arity: Arity::AtLeast(2),
    cost: "O(N), N being the keys of the database",
    about: "Returns how many keys of each type, and bytes, are in each namespace below a prefix. Every key is counted.",
    run: |cx, args| explained(&TREE, show(cx, args)),
    ..ROW
};

fn show(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let query = query(cx.database_index(), &mut args)?;
    let tree = if cx.engine().databases.get(query.database).len() <= AT_ONCE {
        tree::count(cx.engine(), &query)
    } else {
        let Some(HostReply::Tree(tree)) = cx.call_host(HostCall::Read(DataQuery::Tree(query)))? else { return Ok(()) };
        *tree
    };
    write_tree(cx.reply(), &tree);
    Ok(())
}

fn query(database: usize, args: &mut Args<'_>) -> Result<TreeQuery, Error> {
    let (mut delimiter, mut depth, mut limit, mut order) = (DEFAULT_DELIMITER, 1, DEFAULT_LIMIT, TreeOrder::Keys);
    // Options have a value each.
    let prefix = if args.left() % 2 == 1 { args.word()? } else { b"" };
    while !args.is_empty() {
        if args.take_with("DELIMITER", 1) {
            delimiter = args.word()?;
        } else if args.take_with("DEPTH", 1) {
            depth = args.integer()?;
        } else if args.take_with("LIMIT", 1) {
            limit = args.integer()?;
        } else if args.take_with("ORDER", 1) {
            order = tree_order(args.word()?)?;
        } else {
            return Err(Error::Syntax);
        }
    }
    let is_valid = !delimiter.is_empty() && (1..=DEEPEST).contains(&depth) && (0..=MAX_CHILDREN).contains(&limit);
    if !is_valid {
        return Err(Error::Syntax);
    }
    let number = |number: i64| usize::try_from(number).unwrap_or_default();
    let (prefix, delimiter) = (prefix.to_vec(), delimiter.to_vec());
    Ok(TreeQuery { database, prefix, delimiter, depth: number(depth), limit: number(limit), order })
}

fn tree_order(word: &[u8]) -> Result<TreeOrder, Error> {
    match () {
        () if says(word, "KEYS") => Ok(TreeOrder::Keys),
        () if says(word, "BYTES") => Ok(TreeOrder::Bytes),
        () => Err(Error::Syntax),
    }
}

fn write_tree(reply: &mut Reply<'_>, tree: &Tree) {
    reply.map(6);
    write_figures(reply, &tree.figures);
    write_contents(reply, tree);
}

fn write_contents(reply: &mut Reply<'_>, tree: &Tree) {
    reply.bulk(b"children");
    reply.array(tree.children.len());
    tree.children.iter().for_each(|child| write_child(reply, child));
    reply.bulk(b"more");
    reply.map(5);
    reply.bulk(b"children");
    reply.integer(tree.more as i64);
    write_figures(reply, &tree.rest);
}

fn write_child(reply: &mut Reply<'_>, child: &Child) {
    let (kind, figures, tree) = match &child.kind {
        ChildKind::Key(figures) => ("key", figures, None),
        ChildKind::Leaf(figures) => ("namespace", figures, None),
        ChildKind::Namespace(tree) => ("namespace", &tree.figures, Some(tree)),
    };
    reply.map(if tree.is_some() { 8 } else { 6 });
    reply.bulk(b"name");
    reply.bulk(&child.name);
    reply.bulk(b"kind");
    reply.bulk(kind.as_bytes());
    write_figures(reply, figures);
    if let Some(tree) = tree {
        write_contents(reply, tree);
    }
}

/// Writes four fields of a map.
fn write_figures(reply: &mut Reply<'_>, figures: &Figures) {
    for (name, count) in [("keys", figures.keys), ("bytes", figures.bytes), ("expiring", figures.expiring)] {
        reply.bulk(name.as_bytes());
        reply.integer(count as i64);
    }
    reply.bulk(b"types");
    let types = || TYPES.iter().zip(figures.types).filter(|(_, count)| *count > 0);
    reply.map(types().count());
    for (name, count) in types() {
        reply.bulk(name.as_bytes());
        reply.integer(count as i64);
    }
}
