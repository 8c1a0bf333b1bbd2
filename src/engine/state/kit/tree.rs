//! The keys of a database as a tree of namespaces, with exact counts: what begins alike, up to a delimiter.
//!
//! Every key is counted: nothing is sampled. The counts are those of one moment, as are the keys that are passed to
//! [`Builder::add`].
//!
//! Costs: a look-up for each key and level; memory for each namespace, and for as many names of keys as are shown.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use memchr::memmem::Finder;

use crate::value::item::has_prefix;
use crate::value::{TYPES, View};

/// The part of the keys that is asked for, and how much is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeQuery {
    /// The number of the database.
    pub database: usize,
    /// The beginning of the names of the keys.
    pub prefix: Vec<u8>,
    /// The end of a namespace's name; not empty.
    pub delimiter: Vec<u8>,
    /// The number of levels below the prefix, from 1.
    pub depth: usize,
    /// The most children of a namespace that are shown.
    pub limit: usize,
    /// Which children come first.
    pub order: TreeOrder,
}

/// The order of the children of a namespace: namespaces, then keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeOrder {
    /// The namespaces with the most keys first, then keys by their names.
    #[default]
    Keys,
    /// The namespaces with the most bytes first, then the largest keys.
    Bytes,
}

/// The counts of some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of keys.
    pub keys: u64,
    /// Their memory in bytes, as MEMORY USAGE counts it.
    pub bytes: u64,
    /// The number of keys with a deadline.
    pub expiring: u64,
    /// The number of keys of each type, in the order of [`TYPES`].
    pub types: [u64; TYPES.len()],
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The counts of all keys in it.
    pub figures: Figures,
    /// Its children that are shown, in the order that was asked for.
    pub children: Vec<Child>,
    /// The number of its other children.
    pub more: u64,
    /// The counts of the keys in those.
    pub rest: Figures,
}

/// A part of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The whole name of the key, or what all keys of the namespace begin with.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: ChildKind,
}

/// The kind of a part of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// A key.
    Key(Figures),
    /// A namespace of the lowest level that is shown.
    Leaf(Figures),
    /// A namespace, with what is in it.
    Namespace(Tree),
}

/// A key as it is counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedKey<'a> {
    /// The name of the key.
    pub key: &'a [u8],
    /// Its value.
    pub view: View<'a>,
    /// Its memory in bytes.
    pub bytes: usize,
    /// Whether it has a deadline.
    pub expires: bool,
}

/// Counts keys.
#[derive(Debug)]
pub struct Builder<'q> {
    query: &'q TreeQuery,
    delimiter: Finder<'q>,
    root: Branch,
}

/// A namespace that is being counted.
#[derive(Debug, Default)]
struct Branch {
    figures: Figures,
    /// The names of the branches below it, each with its place among them.
    names: HashMap<Box<[u8]>, usize>,
    branches: Vec<Branch>,
    /// The first keys, at most as many as are shown, by what they are ordered by, and their names.
    keys: BTreeMap<(Reverse<u64>, Box<[u8]>), Figures>,
    more: u64,
    rest: Figures,
}

impl TreeOrder {
    /// The number by which namespaces are ordered, the highest first.
    fn of_namespace(self, figures: &Figures) -> Reverse<u64> {
        Reverse(if self == TreeOrder::Bytes { figures.bytes } else { figures.keys })
    }

    /// The number by which keys are ordered, the highest first; then their names decide.
    fn of_key(self, figures: &Figures) -> Reverse<u64> {
        Reverse(if self == TreeOrder::Bytes { figures.bytes } else { 0 })
    }
}

impl Figures {
    fn of(key: &CountedKey<'_>) -> Figures {
        let mut figures = Figures::default();
        figures.count(key);
        figures
    }

    fn count(&mut self, key: &CountedKey<'_>) {
        self.keys += 1;
        self.bytes += key.bytes as u64;
        self.expiring += u64::from(key.expires);
        self.types[key.view.type_number()] += 1;
    }

    fn add(&mut self, other: &Figures) {
        self.keys += other.keys;
        self.bytes += other.bytes;
        self.expiring += other.expiring;
        for (count, more) in self.types.iter_mut().zip(other.types) {
            *count += more;
        }
    }
}

impl<'q> Builder<'q> {
    /// A builder for what is asked for.
    pub fn new(query: &'q TreeQuery) -> Builder<'q> {
        Builder { query, delimiter: Finder::new(&query.delimiter), root: Branch::default() }
    }

    /// Counts a key, unless it does not begin with the prefix.
    pub fn add(&mut self, key: &CountedKey<'_>) {
        if !has_prefix(key.key, &self.query.prefix) {
            return;
        }
        let mut rest = &key.key[self.query.prefix.len()..];
        let mut branch = &mut self.root;
        branch.figures.count(key);
        for _ in 0..self.query.depth {
            let Some(place) = self.delimiter.find(rest) else {
                return branch.add_key(rest, &Figures::of(key), self.query);
            };
            let (name, behind) = rest.split_at(place + self.query.delimiter.len());
            branch = branch.branch(name);
            branch.figures.count(key);
            rest = behind;
        }
    }

    /// The tree of all keys that were added.
    pub fn finish(self) -> Tree {
        self.root.finish(&self.query.prefix, self.query.depth, self.query)
    }
}

impl Branch {
    /// The branch of that name, which is made now if there is none.
    fn branch(&mut self, name: &[u8]) -> &mut Branch {
        let place = self.names.get(name).copied().unwrap_or_else(|| {
            self.branches.push(Branch::default());
            self.names.insert(name.into(), self.branches.len() - 1);
            self.branches.len() - 1
        });
        &mut self.branches[place]
    }

    fn add_key(&mut self, name: &[u8], figures: &Figures, query: &TreeQuery) {
        let (limit, rank) = (query.limit, query.order.of_key(figures));
        let is_before = |last: &(Reverse<u64>, Box<[u8]>)| (rank, name) < (last.0, &*last.1);
        let is_among_first =
            self.keys.len() < limit || self.keys.last_key_value().is_some_and(|(last, _)| is_before(last));
        if is_among_first && limit > 0 {
            self.keys.insert((rank, name.into()), *figures);
        } else {
            self.leave_out(figures);
        }
        if self.keys.len() > limit
            && let Some((_, figures)) = self.keys.pop_last()
        {
            self.leave_out(&figures);
        }
    }

    fn leave_out(&mut self, figures: &Figures) {
        self.more += 1;
        self.rest.add(figures);
    }

    fn finish(mut self, prefix: &[u8], depth: usize, query: &TreeQuery) -> Tree {
        let (limit, order) = (query.limit, query.order);
        let mut branches: Vec<(Box<[u8]>, Branch)> =
            self.names.drain().map(|(name, place)| (name, std::mem::take(&mut self.branches[place]))).collect();
        branches.sort_unstable_by(|(name, one), (other_name, other)| {
            (order.of_namespace(&one.figures), name).cmp(&(order.of_namespace(&other.figures), other_name))
        });
        let mut children = Vec::new();
        for (name, branch) in branches {
            if children.len() >= limit {
                self.leave_out(&branch.figures);
                continue;
            }
            let name = [prefix, &name].concat();
            let kind = match depth {
                0 | 1 => ChildKind::Leaf(branch.figures),
                _ => ChildKind::Namespace(branch.finish(&name, depth - 1, query)),
            };
            children.push(Child { name, kind });
        }
        for ((_, name), figures) in std::mem::take(&mut self.keys) {
            if children.len() >= limit {
                self.leave_out(&figures);
                continue;
            }
            children.push(Child { name: [prefix, &name].concat(), kind: ChildKind::Key(figures) });
        }
        Tree { figures: self.figures, children, more: self.more, rest: self.rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::text::TextView;

    fn query(prefix: &str, depth: usize, limit: usize) -> TreeQuery {
        TreeQuery { database: 0, prefix: prefix.into(), delimiter: b":".to_vec(), depth, limit, order: TreeOrder::Keys }
    }

    fn tree(query: &TreeQuery, keys: &[&str]) -> Tree {
        let mut builder = Builder::new(query);
        for key in keys {
            let view = View::Text(TextView::Bytes(b""));
            let bytes = 10 * key.split_once('#').map_or(1, |(_, tens)| tens.parse().expect("it is a number"));
            builder.add(&CountedKey { key: key.as_bytes(), view, bytes, expires: key.ends_with('x') });
        }
        builder.finish()
    }

    /// The names and numbers of keys, with those below in parentheses, and what is left out.
    fn shown(tree: &Tree) -> String {
        let child = |child: &Child| {
            let name = String::from_utf8_lossy(&child.name).into_owned();
            match &child.kind {
                ChildKind::Key(_) => name,
                ChildKind::Leaf(figures) => format!("{name}{}", figures.keys),
                ChildKind::Namespace(tree) => format!("{name}{}({})", tree.figures.keys, shown(tree)),
            }
        };
        let mut parts: Vec<String> = tree.children.iter().map(child).collect();
        if tree.more > 0 {
            parts.push(format!("+{}/{}", tree.more, tree.rest.keys));
        }
        parts.join(" ")
    }

    const KEYS: [&str; 8] = ["a:1", "a:2", "b", "b:x:1", "b:x:2", "b:y", "c:", ":"];

    #[test]
    fn namespaces_come_before_keys_and_the_largest_first() {
        assert_eq!(shown(&tree(&query("", 1, 10), &KEYS)), "b:3 a:2 :1 c:1 b");
        assert_eq!(shown(&tree(&query("b:", 1, 10), &KEYS)), "b:x:2 b:y");
        assert_eq!(shown(&tree(&query("c:", 1, 10), &KEYS)), "c:");
        assert_eq!(shown(&tree(&query("no", 1, 10), &KEYS)), "");
    }

    #[test]
    fn levels_are_shown_down_to_the_depth() {
        let expected = "b:3(b:x:2(b:x:1 b:x:2) b:y) a:2(a:1 a:2) :1(:) c:1(c:) b";
        assert_eq!(shown(&tree(&query("", 3, 10), &KEYS)), expected);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        for limit in 0..8 {
            let tree = tree(&query("", 1, limit), &KEYS);
            assert_eq!(tree.children.len(), limit.min(5));
            let figures = |child: &Child| match &child.kind {
                ChildKind::Key(figures) | ChildKind::Leaf(figures) => *figures,
                ChildKind::Namespace(tree) => tree.figures,
            };
            let mut sum = tree.rest;
            tree.children.iter().for_each(|child| sum.add(&figures(child)));
            assert_eq!((sum, tree.more as usize), (tree.figures, 5 - limit.min(5)), "{limit}");
            assert_eq!((sum.keys, sum.bytes, sum.types[0]), (8, 80, 8));
        }
        assert_eq!(shown(&tree(&query("", 1, 2), &["d", "b", "a", "c"])), "a b +2/2");
    }

    #[test]
    fn the_largest_come_first_if_the_order_is_by_bytes() {
        let keys = ["few:#9", "many:a", "many:b", "small", "large#5", "also#5"];
        let by_bytes = |limit| TreeQuery { order: TreeOrder::Bytes, ..query("", 1, limit) };
        assert_eq!(shown(&tree(&query("", 1, 10), &keys)), "many:2 few:1 also#5 large#5 small");
        assert_eq!(shown(&tree(&by_bytes(10), &keys)), "few:1 many:2 also#5 large#5 small");
        assert_eq!(shown(&tree(&by_bytes(4), &["s", "b#2", "c#9", "a#3", "d#1"])), "c#9 a#3 b#2 d#1 +1/1");
    }

    #[test]
    fn a_delimiter_may_have_several_bytes() {
        let query = TreeQuery { delimiter: b"::".to_vec(), ..query("", 1, 10) };
        assert_eq!(shown(&tree(&query, &["a::b", "a:b"])), "a::1 a:b");
    }
}
